import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DOCUMENTED_ENDPOINTS } from '../../src/management/endpoints.ts';
import { openApiDocument } from '../../src/management/openapi/document.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const KEY_LINKS = '/consumer-api-key/{consumerApiKeyId}/handover';
const DELIVERIES = '/tollgate/webhook/{webhookId}/deliveries';

/** They have pages of sums, not of records. */
const REPORTS = ['/api-keys/usage', '/consumer-api-key/{consumerApiKeyId}/usage', '/tollgate/self/usage'];
const document = JSON.parse(JSON.stringify(openApiDocument(DOCUMENTED_ENDPOINTS)));
const lists = Object.keys(document.paths).filter(
  (path) => queryOf(path).includes('cursor') && !REPORTS.includes(path),
);

function queryOf(path: string): readonly string[] {
  const parameters: readonly { readonly name?: string }[] = document.paths[path].get?.parameters ?? [];
  return parameters.flatMap(({ name }) => name ?? []);
}

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

async function make(path: string, body: object): Promise<{ readonly [field: string]: string }> {
  const response = await management.send('post', path, body);
  expect([path, response.ok]).toEqual([path, true]);
  return response.body;
}

const makeWebhook = () =>
  make('/tollgate/webhook/create', { url: 'https://8.8.8.8/', events: ['tollgate.key.*'] });

/** The address of each list, with the id of a record that may have the list; and how an item of it is made. */
const LISTS: Readonly<Record<string, (address: string) => Promise<unknown>>> = {
  '/consumer-api-key': () => management.createKey(),
  '/rate-limit': () => management.createPlan(),
  '/tollgate/audit-log': () => management.createKey(),
  '/tollgate/admin-token': () => management.createToken(),
  '/tollgate/webhook': makeWebhook,
  '/tollgate/job': async () =>
    make('/api-keys/bulk', { ids: [(await management.createKey()).id], action: 'disable' }),
  [KEY_LINKS]: (address) => make(address, { ttlSeconds: 60 }),
  [DELIVERIES]: (address) => make(address.replace('/deliveries', '/test'), {}),
};

async function addressOf(path: string): Promise<string> {
  if (path === KEY_LINKS) return path.replace('{consumerApiKeyId}', (await management.createKey()).id);
  if (path === DELIVERIES) return path.replace('{webhookId}', String((await makeWebhook()).webhookId));
  return path;
}

it.each(lists)('%s takes count=true', (path) => {
  expect(queryOf(path)).toContain('count');
});

// Without an identity provider there are no sessions: the tests of sign-in count them.
it.each(lists.filter((path) => path !== '/tollgate/session'))(
  'the total of %s is that of all its pages',
  async (path) => {
    const address = await addressOf(path);
    for (let made = 0; made < 3; made += 1) await LISTS[path]?.(address);
    const page = async (query: object) => {
      const { body } = await management.send(
        'get',
        `${address}?${new URLSearchParams({ limit: '2', ...query })}`,
      );
      const items: unknown = Object.values(body).find(Array.isArray);
      return { ...body, found: Array.isArray(items) ? items.length : 0 };
    };
    const first = await page({});
    let found = first.found;
    for (let { nextCursor } = first; nextCursor !== undefined; ) {
      const next = await page({ cursor: nextCursor });
      found += next.found;
      nextCursor = next.nextCursor;
    }
    expect(found).toBeGreaterThan(2);
    expect((await page({ count: 'true' })).total).toBe(found);
    expect((await page({ count: 'true', cursor: first.nextCursor })).total).toBe(found);
    expect(first).not.toHaveProperty('total');
  },
);

it('a wrong count of a list that is not there ends only its request', async () => {
  const list = '/tollgate/webhook/whk_00000000000000000000000000/deliveries';
  const { body } = await management.send('get', `${list}?count=maybe`).expect(400);
  expect(body.code).toBe('invalid_parameter');
  expect((await management.send('get', list).expect(404)).body.code).toBe('webhook_not_found');
});
