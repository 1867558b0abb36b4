import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SCOPES } from '../../src/permissions/scopes.ts';
import { CREDENTIAL_KINDS, CredentialWorld, type Headers, OWN_TAG } from './support/credential-world.ts';
import { DOCUMENTED_OPERATIONS, type DocumentedOperation } from './support/documented-operations.ts';
import { type Ids, type Must, makeRecords } from './support/tagged-records.ts';

const NIL = '0'.repeat(26);
const ABSENT: Ids = {
  consumerApiKeyId: `key_${NIL}`,
  handoverId: `hnd_${NIL}`,
  adminTokenId: `adm_${NIL}`,
  webhookId: `whk_${NIL}`,
  deliveryId: `dlv_${NIL}`,
  jobId: `job_${NIL}`,
  sessionId: `ses_${NIL}`,
};
/** Plans have no tags: they are shared. */
const SHARED = 'rateLimitId';
/** The operations that make something, or read a configuration, and are about no record that exists. */
const MAKES = [
  ...['createConsumerKey', 'importConsumerKeys', 'createRateLimit', 'createAdminToken', 'createWebhook'],
  ...['diffConfiguration', 'applyConfiguration'],
];
/** They say the same to everyone. */
const SAME_FOR_ALL = ['whoami', 'showSystem', 'openApiDocument', 'streamEvents', 'verifyAuditLog'];

let world: CredentialWorld;
/** The records of others, and those with the tag. */
let others: Ids;
let own: Ids;
let secretOfOthers: string;
beforeAll(async () => {
  world = await CredentialWorld.start();
  own = (await makeRecords(must, OWN_TAG)).ids;
  const made = await makeRecords(must, 'us');
  secretOfOthers = made.secret;
  await world.headersOf('session', { scopes: SCOPES });
  const { sessions } = await must('GET', '/tollgate/session');
  others = { ...made.ids, sessionId: sessions[0].sessionId };
});
afterAll(() => world?.stop());

const must: Must = (...request) => world.must(...request);

function pathOf({ path, pathParameters }: DocumentedOperation, ids: Ids): string {
  return pathParameters.reduce((at, name) => at.replace(`{${name}}`, ids[name] ?? ''), path);
}

const isAboutOne = ({ pathParameters }: DocumentedOperation) =>
  pathParameters.length > 0 && !pathParameters.includes(SHARED);
const managed = DOCUMENTED_OPERATIONS.filter(({ audience }) => audience === 'managed');
const aboutOne = managed.filter(isAboutOne);
const lists = managed.filter(
  ({ method, operationId, pathParameters }) =>
    method === 'GET' && pathParameters.length === 0 && !SAME_FOR_ALL.includes(operationId),
);

/** What names a record of others in a body: the body with it, and the body with what nobody has. */
const NAMED_IN_BODIES: Readonly<Record<string, () => readonly [object, object]>> = {
  findConsumerKey: () => [{ secret: secretOfOthers }, { secret: 'a-secret-that-nobody-ever-had' }],
  tryConsumerKey: () => [{ secret: secretOfOthers }, { secret: 'a-secret-that-nobody-ever-had' }],
  verifySecret: () => [{ secret: secretOfOthers }, { secret: 'a-secret-that-nobody-ever-had' }],
  applyRateLimit: () =>
    [others, ABSENT].map(({ consumerApiKeyId }) => ({ consumerApiKeyId, rateLimitId: 'default' })) as [
      object,
      object,
    ],
  changeConsumerKeys: () =>
    [others, ABSENT].map(({ consumerApiKeyId }) => ({
      ...{ ids: [consumerApiKeyId], action: 'delete', dryRun: true },
    })) as [object, object],
};

/** The entries of the audit log about the records of others: each change of one makes another entry. */
async function changesOfOthers(): Promise<readonly number[]> {
  const totals = [];
  for (const id of Object.values(others))
    totals.push((await must('GET', `/tollgate/audit-log?targetId=${id}&count=true&limit=1`)).total);
  return totals;
}

describe.each(CREDENTIAL_KINDS)('With the %s of a principal that is limited to a tag,', (kind) => {
  let headers: Headers;
  beforeAll(async () => {
    headers = await world.headersOf(kind, { scopes: SCOPES, isLimited: true });
  });

  it('an operation on a record of others is as on one that nobody has', async () => {
    const before = await changesOfOthers();
    for (const operation of aboutOne) {
      for (const more of [{}, { 'If-Match': '"1"' }, { 'If-None-Match': '*' }]) {
        const ask = (ids: Ids) =>
          world.send(operation, pathOf(operation, ids), {
            headers: { ...headers, ...more },
            body: operation.body,
          });
        const [theirs, nobodys] = [await ask(others), await ask(ABSENT)];
        expect([operation.operationId, theirs.status, theirs.text]).toEqual([
          ...[operation.operationId, 404, nobodys.text],
        ]);
      }
    }
    expect(await changesOfOthers()).toEqual(before);
  });

  it('a part of a record of others is no part of a record with the tag', async () => {
    const parts = aboutOne.filter(({ pathParameters }) => pathParameters.length > 1);
    expect(parts.length).toBeGreaterThan(1);
    for (const operation of parts) {
      const [whole = '', part = ''] = operation.pathParameters;
      const ask = (ids: Ids) =>
        world.send(operation, pathOf(operation, { ...ids, [whole]: own[whole] ?? '' }), { headers });
      const [theirs, nobodys] = [await ask({ [part]: others[part] ?? '' }), await ask(ABSENT)];
      expect([operation.operationId, theirs.status, theirs.text]).toEqual([
        ...[operation.operationId, 404, nobodys.text],
      ]);
    }
  });

  it('lists name no record of others, and do not count them', async () => {
    const names = Object.entries(others).flatMap(([name, id]) => (name === SHARED ? [] : [id]));
    for (const operation of lists) {
      const { path, operationId, queryParameters } = operation;
      const query = new URLSearchParams([
        ...(queryParameters.includes('count') ? [['count', 'true']] : []),
        ...(operationId === 'showUsage'
          ? [
              ['groupBy', 'key'],
              ['interval', 'total'],
            ]
          : []),
        ...(operationId === 'listRateLimits' ? [['include', 'keys']] : []),
      ]);
      const { status, text, body } = await world.send(operation, `${path}?${query}`, { headers });
      expect([operationId, status]).toEqual([operationId, 200]);
      for (const name of [...names, 'us key', 'us-customer', 'us token', '127.0.0.1:1/us'])
        expect([operationId, text.includes(name) && name]).toEqual([operationId, false]);
      const listed = Object.values(body).find((value): value is unknown[] => Array.isArray(value));
      if (body.total !== undefined) expect([operationId, body.total]).toEqual([operationId, listed?.length]);
    }
  });

  it('a plan of others has no keys', async () => {
    const plans = await world.send(
      { operationId: 'listRateLimits', method: 'GET' },
      `/rate-limit?include=keys&q=${others.rateLimitId}`,
      { headers },
    );
    expect(plans.body.rateLimits[0].boundKeys).toBe(0);
    const preview = await world.send(
      { operationId: 'previewRateLimit', method: 'POST' },
      `/rate-limit/${others.rateLimitId}/preview`,
      { headers, body: { limit: 1 } },
    );
    expect(preview.body).toMatchObject({ keys: 0, worst: [] });
  });

  it('a body that names a record of others is as one that names nobody', async () => {
    for (const [operationId, bodiesOf] of Object.entries(NAMED_IN_BODIES)) {
      const operation = managed.find((each) => each.operationId === operationId);
      if (operation === undefined) throw new Error(`there is no operation ${operationId}`);
      // Sessions are not for the port for other gateways.
      if (kind === 'session' && operationId === 'verifySecret') continue;
      const [theirs, nobodys] = bodiesOf();
      const ask = (body: object) => world.send(operation, operation.path, { headers, body });
      const [seen, unseen] = [await ask(theirs), await ask(nobodys)];
      expect([operationId, seen.status, seen.text]).toEqual([operationId, unseen.status, unseen.text]);
    }
  });
});

describe('Every documented operation', () => {
  it('is held against the records of others in one of these ways', () => {
    const shared = managed.filter(({ pathParameters }) => pathParameters.includes(SHARED));
    const held = [
      ...[...aboutOne, ...lists, ...shared].map(({ operationId }) => operationId),
      ...[...Object.keys(NAMED_IN_BODIES), ...MAKES, ...SAME_FOR_ALL],
    ];
    expect(held.toSorted()).toEqual(managed.map(({ operationId }) => operationId).toSorted());
  });

  it('has an id of each kind to be held against', () => {
    const names = new Set(aboutOne.flatMap(({ pathParameters }) => pathParameters));
    for (const name of names) expect([name, others[name], ABSENT[name]]).not.toContain(undefined);
  });
});
