import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '../..');

/** The commit of version 0.1.0. By its hash, because not every clone has the tags. Move it with each release. */
const LAST_RELEASE = '0a99258b5dc2c0ac57c9187f0515553e3df0500e';

/** The version before the present one, to be run beside it. */
export interface LastRelease {
  readonly main: string;
  remove(): Promise<void>;
}

/** Takes the last release out of git, on the packages that are installed. Throws in a clone that is too shallow to have it. */
export async function lastRelease(): Promise<LastRelease> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-release-'));
  const archive = join(directory, 'release.tar');
  const source = join(directory, 'source');
  const remove = () => rm(directory, { recursive: true, force: true });
  try {
    await run('git', [
      '-C',
      ROOT,
      'archive',
      `--output=${archive}`,
      LAST_RELEASE,
      'src',
      'sql',
      'package.json',
    ]);
    await mkdir(source);
    await run('tar', ['-C', source, '-xf', archive]);
    await symlink(join(ROOT, 'node_modules'), join(source, 'node_modules'));
    return { main: join(source, 'src/main.ts'), remove };
  } catch (cause) {
    await remove();
    throw new Error(`the last release, commit ${LAST_RELEASE}, is not in this clone: git fetch --unshallow`, {
      cause,
    });
  }
}
