import { statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';

/** Linux's file system in memory. */
const MEMORY_FOLDER = '/dev/shm';
/** Containers often have 64 MB there, which is not enough. */
const NEEDED_BYTES = 2 * 1024 ** 3;

/**
 * Where a test writes thousands of files: in memory where there is room, which takes a quarter of the CPU time that it takes on a disk, or less; else
 * where the system keeps temporary files. Programs may not be executable there.
 */
export async function scratchFolder(): Promise<string> {
  const fileSystem = await statfs(MEMORY_FOLDER).catch(() => undefined);
  const free = fileSystem === undefined ? 0 : fileSystem.bavail * fileSystem.bsize;
  return free < NEEDED_BYTES ? tmpdir() : MEMORY_FOLDER;
}
