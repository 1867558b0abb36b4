import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { lockDirectory } from '../../src/storage/embedded/directory-lock.ts';

describe('the lock of the embedded store', () => {
  it('keeps out a second process for as long as the first one lives', async () => {
    const parent = await mkdtemp(join(tmpdir(), 'tollgate-lock-'));
    const directory = join(parent, 'records');
    const owner = spawn('sleep', ['60']);
    await once(owner, 'spawn');
    await writeFile(`${directory}.lock`, String(owner.pid));
    await expect(lockDirectory(directory)).rejects.toThrow(`in use by process ${owner.pid}`);
    const gone = once(owner, 'exit');
    owner.kill('SIGKILL');
    await gone;
    const unlock = await lockDirectory(directory);
    await unlock();
    await (await lockDirectory(directory))();
    await rm(parent, { recursive: true });
  });
});
