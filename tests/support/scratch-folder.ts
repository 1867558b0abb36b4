import { stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, resolve } from 'node:path';

/** Linux's file system in memory. Containers often have 64 MB there, which is not enough. */
const MEMORY_FOLDER = '/dev/shm';
const NEEDED_BYTES = 2 * 1024 ** 3;

/**
 * Where a test writes thousands of files: in memory where there is room, which takes a quarter of the CPU time that it takes on a disk, or less; else
 * where the system keeps temporary files. Other users can reach it, if any such folder is there. Programs may not be executable there. What
 * `npm test` names in TEST_SCRATCH_FOLDER comes first, because it removes that after the run.
 */
export async function scratchFolder(): Promise<string> {
  if (process.env.TEST_SCRATCH_FOLDER !== undefined) return process.env.TEST_SCRATCH_FOLDER;
  for (const folder of [MEMORY_FOLDER, tmpdir(), '/var/tmp']) {
    if ((await hasRoom(folder, NEEDED_BYTES)) && (await isOpenToAll(folder))) return folder;
  }
  return tmpdir();
}

/** Whether so many bytes can be written in a folder; false where it is missing. */
export async function hasRoom(folder: string, bytes: number): Promise<boolean> {
  const fileSystem = await statfs(folder).catch(() => undefined);
  return fileSystem !== undefined && fileSystem.bavail * fileSystem.bsize >= bytes;
}

/** Whether every user of the machine can reach what is in a folder: a home of mode 700 keeps them from all below it. */
export async function isOpenToAll(folder: string): Promise<boolean> {
  const path = resolve(folder);
  if (((await stat(path)).mode & 0o001) === 0) return false;
  return path === '/' || isOpenToAll(dirname(path));
}
