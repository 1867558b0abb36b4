import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { AdminTokenNotFound } from '../../src/errors.ts';
import { whileUnchanged } from '../../src/management/unchanged-principal.ts';
import { consumerOf } from '../../src/permissions/principal.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { startManagement, type TestManagement } from './start-management.ts';

/** More than an export reads from Postgres at once. */
const KEYS = 210;
const EXPORT = '/tollgate/config';
const AUDIT_LOG = '/tollgate/audit-log?format=csv';

let management: TestManagement;
let url: string;
beforeAll(async () => {
  management = await startManagement();
  url = `http://127.0.0.1:${await management.listen()}`;
  const keys = Array.from({ length: KEYS }, (_, number) => ({
    ...{ name: `key ${number}`, externalId: `key-${number}`, secret: createSecret('tg', systemRandom) },
  }));
  await management.send('post', '/api-keys/import', { keys }).expect(200);
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => management.stop());

/** A download that reads no second page before `readOn` is called. */
interface HeldDownload {
  /** Resolves with all that comes, and whether it was cut off. */
  readOn(): Promise<{ readonly text: string; readonly isCut: boolean }>;
}

/** Begins a download. Resolves once its first bytes have arrived. */
async function begin(path: string, secret: string): Promise<HeldDownload> {
  const { promise: isReadOn, resolve: letRead } = Promise.withResolvers<void>();
  const { desiredState, audit } = management.records;
  const exportKeys = desiredState.exportKeys.bind(desiredState);
  jest.spyOn(desiredState, 'exportKeys').mockImplementation(async function* (selection) {
    for await (const some of exportKeys(selection)) {
      yield some;
      await isReadOn;
    }
  });
  const list = audit.list.bind(audit);
  jest.spyOn(audit, 'list').mockImplementation(async (filter, page) => {
    if (page.beforeSequence !== undefined) await isReadOn;
    return list(filter, page);
  });
  const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${secret}` } });
  expect(response.status).toBe(200);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader?.read())?.value ?? '';
  return {
    async readOn() {
      letRead();
      try {
        for (;;) {
          const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
          if (done) return { text, isCut: false };
          text += value;
        }
      } catch {
        return { text, isCut: true };
      }
    },
  };
}

const createToken = () =>
  management.createToken({ scopes: ['keys:read', 'plans:read', 'audit:read', 'webhooks:read'] });

let added = 0;
/** A key that is the last one in an export. */
async function addKey(): Promise<string> {
  added += 1;
  const externalId = `later-${added}`;
  await management.send('post', '/consumer-api-key/create', { name: 'later', externalId }).expect(201);
  return externalId;
}

describe('A download that takes long', () => {
  it.each([
    ['is deleted', 'delete', '', undefined],
    ['is limited to tags', 'patch', '', { onlyTags: ['eu'] }],
    ['is rotated', 'post', '/rotate', { graceSeconds: 60 }],
  ] as const)('is cut off after its token %s', async (_, method, path, body) => {
    const { adminTokenId, secret } = await createToken();
    const download = await begin(EXPORT, secret);
    await management.send(method, `/tollgate/admin-token/${adminTokenId}${path}`, body).expect(200);
    const externalId = await addKey();
    management.clock.advance(15_000);
    const { text, isCut } = await download.readOn();
    expect([isCut, text.includes(externalId)]).toEqual([true, false]);
  });

  it('is cut off as a CSV file as well', async () => {
    const { adminTokenId, secret } = await createToken();
    const download = await begin(AUDIT_LOG, secret);
    await management.send('delete', `/tollgate/admin-token/${adminTokenId}`).expect(200);
    management.clock.advance(15_000);
    expect((await download.readOn()).isCut).toBe(true);
  });

  it('goes on while its token is as it was', async () => {
    const { secret } = await createToken();
    const download = await begin(EXPORT, secret);
    const externalId = await addKey();
    management.clock.advance(15_000);
    const { text, isCut } = await download.readOn();
    expect(isCut).toBe(false);
    expect(JSON.parse(text).keys).toContainEqual(expect.objectContaining({ externalId }));
  });

  it('goes on as a CSV file as well', async () => {
    const { secret } = await createToken();
    const download = await begin(AUDIT_LOG, secret);
    management.clock.advance(15_000);
    const { text, isCut } = await download.readOn();
    expect(isCut).toBe(false);
    // The entries of all keys and the header.
    expect(text.split('\r\n').length).toBeGreaterThan(KEYS + 1);
  });

  it('goes on for the consumer of a key, whose secret is no admin token', async () => {
    const { clock } = management;
    const get = () => Promise.reject(new AdminTokenNotFound());
    const consumer = consumerOf({ id: 'key_1', name: 'a key' }, { version: 1, endsAtMs: null });
    async function* chunks() {
      yield 'first';
      clock.advance(15_000);
      yield 'second';
    }
    const sent: string[] = [];
    for await (const chunk of whileUnchanged(chunks(), consumer, { tokens: { get }, clock }))
      sent.push(chunk);
    expect(sent).toEqual(['first', 'second']);
  });
});
