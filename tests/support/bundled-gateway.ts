import { createHash, randomUUID } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'vite';

const ROOT = resolve(import.meta.dirname, '../..');
const BUNDLE = join(ROOT, 'node_modules/.cache/tollgate-tests');
const MADE_FROM = 'made-from';

/** `src/main.ts` with all that it imports, in a few files: once `bundleGateway` has resolved. */
export const BUNDLED_MAIN = join(BUNDLE, 'main.js');

/**
 * Puts the gateway and its packages into a few files in place of 1300, from which it starts in less than half of the CPU time. They are made
 * again where the source, the packages or this file have changed. Tests of `npm start`, of `--check` and of what a start loads run the source.
 */
export async function bundleGateway(): Promise<void> {
  const source = digestOfSource();
  if (isMadeFrom(source)) return;
  // Loaded only here: most runs find the files.
  const { build } = await import('vite');
  const made = `${BUNDLE}.${randomUUID()}`;
  await build({
    configFile: false,
    root: ROOT,
    publicDir: false,
    logLevel: 'error',
    plugins: [atPlaceOfSource],
    ssr: { noExternal: true, external: ['@electric-sql/pglite'] },
    build: {
      ssr: join(ROOT, 'src/main.ts'),
      outDir: made,
      target: 'esnext',
      minify: false,
    },
  });
  await writeFile(join(made, MADE_FROM), source);
  await putInPlace(made, source);
}

/** A module knows the files beside it by its own place, which stays that of its source. */
const atPlaceOfSource: Plugin = {
  name: 'at-place-of-source',
  transform(code, path) {
    if (!path.startsWith(join(ROOT, 'src')) || !code.includes('import.meta')) return;
    return code
      .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
      .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)));
  },
};

function digestOfSource(): string {
  const files = globSync('src/**/*.ts', { cwd: ROOT, exclude: ['src/{console,portal}/**'] }).sort();
  const hash = createHash('sha256');
  for (const file of [...files, 'package-lock.json', import.meta.filename])
    hash.update(`${file}\0`).update(readFileSync(resolve(ROOT, file)));
  return hash.digest('hex');
}

function isMadeFrom(source: string): boolean {
  const path = join(BUNDLE, MADE_FROM);
  return existsSync(path) && readFileSync(path, 'utf8') === source;
}

/** Another run may do the same at the same time. */
async function putInPlace(made: string, source: string): Promise<void> {
  try {
    await rename(made, BUNDLE);
  } catch {
    if (!isMadeFrom(source)) {
      await rename(BUNDLE, `${made}.outdated`);
      await rename(made, BUNDLE);
    }
    await Promise.all([made, `${made}.outdated`].map((path) => rm(path, { recursive: true, force: true })));
  }
}
