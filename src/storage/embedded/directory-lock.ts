import { readFile, rm, writeFile } from 'node:fs/promises';

/**
 * Takes a directory for this process, and gives the function that lets it go. Rejects while another process that is alive has
 * it. A lock that a killed process left behind is taken over.
 */
export async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const file = `${directory}.lock`;
  const owner = await ownerOf(file);
  // In a container every start may have the same process id: a lock with our own id is one that we left behind.
  if (owner !== undefined && owner !== process.pid && isAlive(owner)) {
    throw new Error(
      `The directory ${directory} is in use by process ${owner}. Only one process may use it at a time.`,
    );
  }
  await rm(file, { force: true });
  // Fails where another process that starts right now was faster.
  await writeFile(file, String(process.pid), { flag: 'wx', mode: 0o600 });
  return () => rm(file, { force: true });
}

async function ownerOf(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It lives, but is not ours to signal.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
