import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SCOPES, type Scope } from '../../src/permissions/scopes.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { CREDENTIAL_KINDS, CredentialWorld, type Headers } from './support/credential-world.ts';
import { DOCUMENTED_OPERATIONS, type DocumentedOperation } from './support/documented-operations.ts';

let world: CredentialWorld;
/** The secret of a consumer's key. */
let consumer: Headers;
beforeAll(async () => {
  world = await CredentialWorld.start();
  const { secret } = await world.fleet.admin.makeKey('a consumer');
  consumer = { Authorization: `Bearer ${secret}` };
});
afterAll(() => world?.stop());

/** With ids that no record has, and a query or body that says nothing: the credential is judged before all of them. */
function call(operation: DocumentedOperation, headers?: Headers) {
  const path = operation.path.replaceAll(/\{\w+\}/g, 'absent');
  const query = operation.operationId === 'streamEvents' ? '?type=unknown' : '';
  return world.send(operation, path + query, { ...(headers && { headers }), body: {} });
}

const of = (audience: DocumentedOperation['audience']) =>
  DOCUMENTED_OPERATIONS.filter((operation) => operation.audience === audience);
/** People and programs other than the command do not sign in at the port for other gateways. */
const takesSessions = ({ operationId }: DocumentedOperation) => operationId !== 'verifySecret';
/** Everyone may end their own session. The scope is needed for those of others. */
const ENDS_OTHERS: readonly Scope[] = ['tokens:write'];
const neededBy = ({ operationId, scopes }: DocumentedOperation) =>
  operationId === 'endSession' ? ENDS_OTHERS : scopes;

describe.each(CREDENTIAL_KINDS)('Every documented operation, with the %s of a principal,', (kind) => {
  const managed = of('managed').filter((each) => kind !== 'session' || takesSessions(each));

  it('that lacks one scope is 403 missing_scope, and names it', async () => {
    for (const operation of managed) {
      for (const missing of neededBy(operation)) {
        const scopes = SCOPES.filter((scope) => scope !== missing);
        const { status, body } = await call(operation, await world.headersOf(kind, { scopes }));
        expect([operation.operationId, status, body?.code, body?.requiredScope]).toEqual([
          ...[operation.operationId, 403, 'missing_scope', missing],
        ]);
      }
    }
  });

  it('that has what it needs and nothing else is neither 401 nor 403', async () => {
    for (const operation of managed) {
      const needed = neededBy(operation);
      const scopes = needed.length === 0 ? SCOPES.slice(0, 1) : needed;
      const { status } = await call(operation, await world.headersOf(kind, { scopes }));
      expect([operation.operationId, [401, 403].includes(status)]).toEqual([operation.operationId, false]);
    }
  });

  it('that has all scopes is 401 where it is for consumers', async () => {
    const headers = await world.headersOf(kind, { scopes: SCOPES });
    for (const operation of of('consumer')) {
      const { status } = await call(operation, headers);
      expect([operation.operationId, status]).toEqual([operation.operationId, 401]);
    }
  });
});

describe('Every documented operation', () => {
  it('for administrators is 401 for a consumer, and for no credential', async () => {
    for (const operation of of('managed')) {
      const statuses = [await call(operation, consumer), await call(operation)].map(({ status }) => status);
      expect([operation.operationId, ...statuses]).toEqual([operation.operationId, 401, 401]);
    }
  });

  it('for consumers is 401 for the root token, and for no credential', async () => {
    const root = { Authorization: `Bearer ${ROOT_TOKEN}` };
    expect(of('consumer').length).toBeGreaterThan(2);
    for (const operation of of('consumer')) {
      const statuses = [await call(operation, root), await call(operation)].map(({ status }) => status);
      expect([operation.operationId, ...statuses]).toEqual([operation.operationId, 401, 401]);
      expect([operation.operationId, (await call(operation, consumer)).status]).not.toContain(401);
    }
  });

  it('that needs no credential needs the token of a link, which is unknown', async () => {
    const body = { token: `tgh_${'0'.repeat(43)}` };
    expect(of('open').map(({ operationId }) => operationId)).toEqual(['openHandover', 'revealHandover']);
    for (const operation of of('open'))
      expect((await world.send(operation, operation.path, { body })).body.code).toBe('handover_not_found');
  });

  it('at the port for other gateways takes no session', async () => {
    const headers = await world.headersOf('session', { scopes: SCOPES });
    for (const operation of of('managed').filter((each) => !takesSessions(each)))
      expect((await call(operation, headers)).status).toBe(401);
  });
});
