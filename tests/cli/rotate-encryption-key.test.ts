import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { copyRecordsInto } from '../support/data-directory.ts';
import { freePort } from '../support/free-port.ts';
import { ENCRYPTION_KEY } from '../support/gateway.ts';
import { createTestDatabase, type TestDatabase } from '../support/stores.ts';
import { runTollgate } from './support/run-tollgate.ts';

const NEW_KEY = Buffer.alloc(32, 8).toString('base64');

let database: TestDatabase;
let directory: string;
beforeAll(async () => {
  database = await createTestDatabase();
  directory = await mkdtemp(join(tmpdir(), 'tollgate-rotate-'));
});
afterAll(async () => {
  await database?.drop();
  await rm(directory, { recursive: true, force: true });
});

function rotate(settings: Readonly<Record<string, string>>) {
  const environment = { ENCRYPTION_KEY: `${NEW_KEY},${ENCRYPTION_KEY}`, DATA_DIR: directory, ...settings };
  return runTollgate(['rotate-encryption-key'], { environment });
}

describe('tollgate rotate-encryption-key', () => {
  it('says why Postgres can not be used', async () => {
    const stranger = new URL(database.url);
    stranger.username = 'nobody-here';
    for (const [DATABASE_URL, reason] of [
      [`postgres://a:not-the-password-7@127.0.0.1:${await freePort()}/b`, 'connection refused'],
      [stranger.href, 'nobody-here'],
    ] as const) {
      const { code, stderr } = await rotate({ DATABASE_URL });
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(new RegExp(`^Postgres .*: .*${reason}.*correct DATABASE_URL`, 'i')),
      ]);
      expect(stderr).not.toContain('not-the-password-7');
    }
  });

  it('names the migrations that the database lacks', async () => {
    const { code, stderr } = await rotate({ DATABASE_URL: database.url });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^\d+ migrations are pending: 0001_.* Run tollgate migrate first\.\n$/);
  });

  it('needs DATABASE_URL or the embedded store, and makes neither', async () => {
    const { code, stderr } = await rotate({});
    expect([code, stderr]).toEqual([78, expect.stringContaining('DATABASE_URL: is not set')]);
    expect(await readdir(directory)).toEqual([]);
  });

  it('works on an embedded store that is there', async () => {
    await copyRecordsInto(directory);
    expect(await rotate({})).toMatchObject({ code: 0, stdout: expect.stringContaining('"rotated":') });
  });
});
