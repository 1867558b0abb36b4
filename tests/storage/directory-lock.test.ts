import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { lockDirectory } from '../../src/storage/embedded/directory-lock.ts';
import { endChild } from '../support/end-child.ts';

const LOCK = new URL('../../src/storage/embedded/directory-lock.ts', import.meta.url).href;
/** Tells what became of its attempt, and stays until it is ended. */
const LOCKER = `
  const stay = (unlock) => setInterval(unlock, 2 ** 30) && console.log('locked');
  import { lockDirectory } from ${JSON.stringify(LOCK)};
  lockDirectory(process.argv[1]).then(stay, (error) => console.log(error.message));`;
/** Where namespaces can be made, what makes a process the first one on a host of its own, as in a container. */
const IN_A_CONTAINER = [
  ['unshare', '--fork', '--kill-child', '--pid', '--uts'],
  ['unshare', '--fork', '--kill-child', '--pid', '--uts', '--user', '--map-root-user'],
].find(([command = '', ...flags]) => spawnSync(command, [...flags, 'true']).status === 0);

interface Locker {
  readonly child: ChildProcess;
  readonly outcome: Promise<string>;
}

describe('the lock of the embedded store', () => {
  let parent: string;
  let directory: string;
  let lockers: Locker[];

  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), 'tollgate-lock-'));
    directory = join(parent, 'records');
    lockers = [];
  });
  afterEach(async () => {
    for (const { child } of lockers) await endChild(child);
    await rm(parent, { recursive: true });
  });

  function startLocker(inside: readonly string[] = []): Locker {
    const [command = '', ...args] = [
      ...inside,
      process.execPath,
      ...['--input-type=module', '--eval', LOCKER, directory],
    ];
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const locker = { child, outcome: once(child.stdout, 'data').then(([bytes]) => String(bytes).trim()) };
    lockers.push(locker);
    return locker;
  }

  it('is taken by one of many processes that start at the same instant', async () => {
    for (let round = 0; round < 3; round += 1) {
      const starting = Array.from({ length: 6 }, () => startLocker());
      const outcomes = await Promise.all(starting.map(({ outcome }) => outcome));
      const owner = starting[outcomes.indexOf('locked')];
      const others = outcomes.filter((outcome) => outcome !== 'locked');
      expect(others).toHaveLength(5);
      for (const outcome of others) {
        expect(outcome).toContain(`${directory} is in use by process ${owner?.child.pid} on host `);
      }
      for (const { child } of starting) await endChild(child);
    }
  });

  it('is free again after its process was killed, even if the process id is reused', async () => {
    const { child, outcome } = startLocker();
    expect(await outcome).toBe('locked');
    await expect(lockDirectory(directory)).rejects.toThrow(`in use by process ${child.pid}`);
    await endChild(child);
    await writeFile(`${directory}.lock`, `process ${process.ppid} on host another\n`);
    (await lockDirectory(directory))();
    (await lockDirectory(directory))();
  });

  it('keeps out a second container that shares the volume', async () => {
    const first = startLocker(IN_A_CONTAINER);
    expect(await first.outcome).toBe('locked');
    const second = startLocker(IN_A_CONTAINER);
    const owner = IN_A_CONTAINER === undefined ? first.child.pid : 1;
    expect(await second.outcome).toContain(`${directory} is in use by process ${owner} on host `);
  });

  it('keeps out a second user in the same process', async () => {
    const unlock = await lockDirectory(directory);
    await expect(lockDirectory(directory)).rejects.toThrow(`in use by process ${process.pid}`);
    const { outcome } = startLocker();
    expect(await outcome).toContain(`in use by process ${process.pid}`);
    unlock();
    expect(await startLocker().outcome).toBe('locked');
  });

  it('says what is wrong where it can not be taken at all', async () => {
    directory = join(parent, 'missing', 'records');
    await expect(lockDirectory(directory)).rejects.toThrow('can not be opened: let this user write there');
  });
});
