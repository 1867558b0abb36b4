import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { StartFault } from '../../platform/process/start-fault.ts';

/** How long a process that is just ending may still hold the lock. Milliseconds. */
const LOCK_TIMEOUT_MS = 250;
const SQLITE_BUSY = 5;
/** How often the owner's name is read: the owner writes it right after it got the lock. */
const READS_OF_OWNER = 20;

/**
 * Locks a directory for this process. Resolves with the function that unlocks it, which may be called more than once. Rejects while
 * another process has the lock, with a sentence that names that process.
 *
 * The lock is the kernel's: an exclusive transaction on the empty SQLite database `<directory>.lock.db`, which SQLite turns into an
 * `fcntl` lock. It ends with its process, however the process ends, and works between containers that share a volume, where process ids
 * mean nothing. `<directory>.lock` only holds the process's name for the sentence. Neither file ever needs to be removed by hand.
 *
 * Keep the returned function: a database without a reference is closed by garbage collection. Never open the lock's file in another way:
 * a process that closes any handle of a file loses its `fcntl` locks on it.
 */
export async function lockDirectory(directory: string): Promise<() => void> {
  const ownerFile = `${directory}.lock`;
  const lock = tryLock(`${directory}.lock.db`);
  if (lock === undefined) {
    const owner = await ownerIn(ownerFile);
    throw new StartFault(
      `The directory ${directory} is in use by ${owner}: stop it, or give this one another DATA_DIR.`,
    );
  }
  writeFileSync(ownerFile, `process ${process.pid} on host ${hostname()}\n`, { mode: 0o600 });
  return () => {
    if (!lock.isOpen) return;
    // The owner's file goes first, because the next owner may write it as soon as the lock is free.
    rmSync(ownerFile, { force: true });
    lock.close();
  };
}

/** The open file, which holds the lock; undefined when another process has it. */
function tryLock(file: string): DatabaseSync | undefined {
  const database = opened(file);
  try {
    // No journal: nothing is ever written.
    database.exec('PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    if (isBusy(error)) return undefined;
    throw new StartFault(`The file ${file} can not be locked.`, { cause: error });
  }
}

function opened(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file, { timeout: LOCK_TIMEOUT_MS });
  } catch (error) {
    throw new StartFault(
      `The file ${file} can not be opened: let this user write there, or set DATA_DIR to another place.`,
      { cause: error },
    );
  }
}

function isBusy(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'errcode' in error && error.errcode === SQLITE_BUSY;
}

async function ownerIn(file: string): Promise<string> {
  for (let read = 0; read < READS_OF_OWNER; read += 1) {
    const owner = textOf(file).trim();
    if (owner !== '') return owner;
    await pause(LOCK_TIMEOUT_MS / 10);
  }
  return 'another process';
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
