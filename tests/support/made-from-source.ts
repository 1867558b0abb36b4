import { createHash, randomUUID } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
const CACHE = join(ROOT, 'node_modules/.cache');
const SOURCE = ['src/**/*.ts', 'src/**/*.lua', 'sql/*'];
const NOT_OF_THE_GATEWAY = ['src/{console,portal}/**'];
const MADE_FROM = 'made-from';

/** A folder that later runs use as well, until what it was made from has changed. */
export interface MadeFromSource {
  /** Below the cache of the modules. */
  readonly name: string;
  /** The files that say how it is made, besides the source of the gateway and the packages. */
  readonly makers: readonly string[];
  /** Fills the folder, which does not exist yet. */
  readonly make: (folder: string) => Promise<void>;
}

/** The path of such a folder. */
export function pathOfMade(name: string): string {
  return join(CACHE, name);
}

/** Makes the folder where it is missing or outdated, and resolves with its path. */
export async function makeWhereOutdated({ name, makers, make }: MadeFromSource): Promise<string> {
  const folder = pathOfMade(name);
  const source = digestOf([import.meta.filename, ...makers]);
  if (isMadeFrom(folder, source)) return folder;
  const made = `${folder}.${randomUUID()}`;
  await make(made);
  await writeFile(join(made, MADE_FROM), source);
  await putInPlace(folder, { made, source });
  return folder;
}

function digestOf(makers: readonly string[]): string {
  const files = globSync(SOURCE, { cwd: ROOT, exclude: NOT_OF_THE_GATEWAY }).sort();
  const hash = createHash('sha256');
  for (const file of [...files, 'package-lock.json', ...makers])
    hash.update(`${file}\0`).update(readFileSync(resolve(ROOT, file)));
  return hash.digest('hex');
}

function isMadeFrom(folder: string, source: string): boolean {
  const path = join(folder, MADE_FROM);
  return existsSync(path) && readFileSync(path, 'utf8') === source;
}

/** Another run may do the same at the same time. */
async function putInPlace(
  folder: string,
  { made, source }: { readonly made: string; readonly source: string },
): Promise<void> {
  const outdated = `${made}.outdated`;
  try {
    await rename(made, folder);
  } catch {
    if (!isMadeFrom(folder, source)) {
      await rename(folder, outdated);
      await rename(made, folder);
    }
    await Promise.all([made, outdated].map((path) => rm(path, { recursive: true, force: true })));
  }
}
