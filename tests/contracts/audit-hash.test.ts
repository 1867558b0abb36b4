import { createHmac, createSecretKey } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { entryHash } from '../../src/audit/audit-chain.ts';
import type { AuditEntry } from '../../src/audit/audit-entry.ts';

const KEY = createSecretKey(Buffer.alloc(32, 1));
const PREVIOUS = Buffer.alloc(32, 2);
const ENTRY: AuditEntry = {
  sequence: 7,
  atMs: 1_790_000_000_000,
  action: 'key.update',
  actor: { type: 'token', id: 'tok_1', name: 'deploy' },
  target: { type: 'key', id: 'key_1', name: 'shop', tags: ['eu'] },
  changesText: '{"name":["a","b"]}',
  reason: null,
  requestId: 'req_1',
  address: '192.0.2.1',
  outcome: 'success',
  jobId: null,
};
/** What an entry had in its hash before entries could have a job or an email address. */
const CONTENT =
  '7,1790000000000,"key.update",["token","tok_1","deploy"],["key","key_1","shop",["eu"]],"{\\"name\\":[\\"a\\",\\"b\\"]}",null,"req_1","192.0.2.1","success"';

it.each([
  ['no job and no email address', ENTRY, `[${CONTENT}]`],
  ['a job', { ...ENTRY, jobId: 'job_1' }, `[${CONTENT},"job_1"]`],
  [
    'an email address',
    { ...ENTRY, actor: { ...ENTRY.actor, email: 'a@example.com' } },
    `[${CONTENT.replace('"deploy"', '"deploy","a@example.com"')}]`,
  ],
])('the hash of an audit entry with %s stays that of earlier versions', (_what, entry, content) => {
  const expected = createHmac('sha256', KEY).update(PREVIOUS).update(content).digest('hex');
  expect(entryHash(KEY, PREVIOUS, entry).toString('hex')).toBe(expected);
});
