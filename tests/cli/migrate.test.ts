import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { copyRecordsInto } from '../support/data-directory.ts';
import { runTollgate } from './support/run-tollgate.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-migrate-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const migrate = () => runTollgate(['migrate'], { environment: { DATA_DIR: directory } });

describe('tollgate migrate without DATABASE_URL', () => {
  it('ends with 78 and creates no store where there is none', async () => {
    const { code, stderr } = await migrate();
    expect([code, stderr]).toEqual([78, expect.stringContaining('DATABASE_URL: is not set')]);
    expect(await readdir(directory)).toEqual([]);
  });

  it('works on an embedded store that is there', async () => {
    await copyRecordsInto(directory);
    expect(await migrate()).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to migrate') });
  });
});
