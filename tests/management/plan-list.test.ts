import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { decide, subject } from '../support/limiter-stores.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const LIST = '/rate-limit';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
  for (const [index, description] of ['Gold 100%', 'gold_2', 'Silber für alle', 'x', 'y'].entries()) {
    await management.createPlan({ rateLimitId: `Plan.${index}`, description });
  }
});
afterAll(() => management.stop());

async function idsOf(query: string): Promise<readonly string[]> {
  const { body } = await management.send('get', `${LIST}?${query}`).expect(200);
  return body.rateLimits.map(({ rateLimitId }: { rateLimitId: string }) => rateLimitId);
}

async function keyUnder(rateLimitId: string): Promise<string> {
  const fields = { name: 'n', rateLimitId, tags: ['a'] };
  return (await management.send('post', '/consumer-api-key/create', fields).expect(201)).body.id;
}

describe('GET /rate-limit', () => {
  const ALL = ['Plan.0', 'Plan.1', 'Plan.2', 'Plan.3', 'Plan.4', 'default'];

  it('lists all plans by id without a limit, and no more than asked for with one', async () => {
    const { body } = await management.send('get', LIST).expect(200);
    expect(Object.keys(body)).toEqual(['rateLimits']);
    expect(await idsOf('')).toEqual(ALL);
    const seen: string[] = [];
    let cursor = '';
    do {
      const page = await management.send('get', `${LIST}?limit=4&count=true${cursor}`).expect(200);
      expect(page.body.total).toBe(6);
      seen.push(...page.body.rateLimits.map(({ rateLimitId }: { rateLimitId: string }) => rateLimitId));
      cursor = page.body.nextCursor === undefined ? '' : `&cursor=${page.body.nextCursor}`;
    } while (cursor !== '');
    expect(seen).toEqual(ALL);
  });

  it('reads on to the end with a cursor alone', async () => {
    const { body } = await management.send('get', `${LIST}?limit=2`).expect(200);
    expect(await idsOf(`cursor=${body.nextCursor}`)).toEqual(ALL.slice(2));
    const other = await management.send('get', `${LIST}?q=plan&cursor=${body.nextCursor}`).expect(400);
    expect(other.body.code).toBe('invalid_cursor');
    expect((await management.send('get', `${LIST}?cursor=x`).expect(400)).body.code).toBe('invalid_cursor');
  });

  it('finds a part of the id or the description, in any case', async () => {
    expect(await idsOf('q=GOLD')).toEqual(['Plan.0', 'Plan.1']);
    expect(await idsOf('q=plan.3')).toEqual(['Plan.3']);
    expect(await idsOf(`q=${encodeURIComponent('FÜR')}`)).toEqual(['Plan.2']);
    expect(await idsOf(`q=${encodeURIComponent('0%')}`)).toEqual(['Plan.0']);
    expect(await idsOf('q=d_2')).toEqual(['Plan.1']);
    const { body } = await management.send('get', `${LIST}?q=gold&count=true&limit=1`).expect(200);
    expect(body.total).toBe(2);
  });

  it('shows how many keys are bound to each plan where that is asked for', async () => {
    await keyUnder('Plan.3');
    await keyUnder('Plan.3');
    const { body } = await management.send('get', `${LIST}?include=keys&q=Plan.`).expect(200);
    const bound = body.rateLimits.map(({ boundKeys }: { boundKeys: number }) => boundKeys);
    expect(bound).toEqual([0, 0, 0, 2, 0]);
    expect((await management.send('get', LIST).expect(200)).body.rateLimits[0]).not.toHaveProperty(
      'boundKeys',
    );
  });

  it.each(['limit=0', 'limit=1001', 'q=', 'q=a&q=b', 'include=usage', 'count=1', 'cursor=a&cursor=b'])(
    'rejects ?%s',
    async (query) => {
      const { body } = await management.send('get', `${LIST}?${query}`).expect(400);
      expect(body.code).toBe('invalid_parameter');
    },
  );
});

describe('DELETE /rate-limit/{rateLimitId}?rebindTo', () => {
  it('needs the scope to write keys as well', async () => {
    const [from, to] = [await management.createPlan(), await management.createPlan()];
    const id = await keyUnder(from.rateLimitId);
    const path = `${LIST}/${from.rateLimitId}?rebindTo=${to.rateLimitId}`;
    const token = await management.createToken({ name: 'planner', scopes: ['plans:write'] });
    const { body } = await management.sendAs(token.secret, 'delete', path).expect(403);
    expect(body).toMatchObject({ code: 'missing_scope', requiredScope: 'keys:write' });
    const shown = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(shown.body.rateLimitId).toBe(from.rateLimitId);
    const both = await management.createToken({ name: 'both', scopes: ['plans:write', 'keys:write'] });
    await management.sendAs(both.secret, 'delete', path).expect(200);
  });

  it('binds all keys to the other plan, with their next request, and deletes this one', async () => {
    const [from, to] = [await management.createPlan(), await management.createPlan({ limit: 3 })];
    const ids = [await keyUnder(from.rateLimitId), await keyUnder(from.rateLimitId)];
    const before = await Promise.all(
      ids.map(async (id) => (await management.records.keys.find(id))?.snapshot),
    );
    const path = `${LIST}/${from.rateLimitId}`;
    const rejected = await management.send('delete', path).expect(409);
    expect(rejected.body).toMatchObject({ code: 'plan_in_use', boundKeys: 2 });
    management.clock.advance(1000);
    const { body } = await management.send('delete', `${path}?rebindTo=${to.rateLimitId}`).expect(200);
    expect(body).toEqual({
      rateLimitId: from.rateLimitId,
      message: 'The rate limit plan was deleted.',
      reboundKeys: 2,
    });
    await management.send('get', path).expect(404);
    for (const [index, id] of ids.entries()) {
      const shown = await management.send('get', `/consumer-api-key/${id}`).expect(200);
      expect(shown.body).toMatchObject({ rateLimitId: to.rateLimitId, lastUpdated: '2026-02-03T04:05:07Z' });
      expect(shown.body.usage.rateLimits).toMatchObject({ limit: 3, remaining: 3 });
      // What a replica still has of the key is no longer taken for the truth.
      const copy = before[index];
      if (copy?.plan === null || copy === undefined) throw new Error('the key had no plan');
      const asked = { version: copy.version, fresh: false, limits: copy.plan?.limits.all ?? [] };
      const decision = await decide(management.limiter, subject(id, asked));
      expect(decision).toMatchObject({ kind: 'stale' });
    }
    management.clock.advance(-1000);
  });

  it('changes nothing when the other plan is unknown or the same, or this the default', async () => {
    const { rateLimitId } = await management.createPlan();
    const id = await keyUnder(rateLimitId);
    const path = `${LIST}/${rateLimitId}`;
    const unknown = await management.send('delete', `${path}?rebindTo=nowhere`).expect(404);
    expect(unknown.body).toEqual({
      error: 'There is no rate limit plan with this rebindTo.',
      code: 'plan_not_found',
    });
    for (const bad of [rateLimitId, '', '%00', 'a b', `x&rebindTo=default`]) {
      const { body } = await management.send('delete', `${path}?rebindTo=${bad}`).expect(400);
      expect(body.code).toBe('invalid_parameter');
    }
    await management.send('delete', `${LIST}/nowhere?rebindTo=default`).expect(404);
    const shipped = await management.send('delete', `${LIST}/default?rebindTo=${rateLimitId}`).expect(409);
    expect(shipped.body.code).toBe('plan_is_default');
    await management.send('delete', `${path}?rebindTo=default`).set('If-Match', '"other"').expect(412);
    const shown = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(shown.body.rateLimitId).toBe(rateLimitId);
  });

  it('of two that swap keys at once, one finds its plan gone', async () => {
    const [one, other] = [await management.createPlan(), await management.createPlan()];
    const ids = [await keyUnder(one.rateLimitId), await keyUnder(other.rateLimitId)];
    const responses = await Promise.all([
      management.send('delete', `${LIST}/${one.rateLimitId}?rebindTo=${other.rateLimitId}`),
      management.send('delete', `${LIST}/${other.rateLimitId}?rebindTo=${one.rateLimitId}`),
    ]);
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 404]);
    for (const id of ids) {
      const { body } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
      await management.send('get', `${LIST}/${body.rateLimitId}`).expect(200);
    }
  });
});
