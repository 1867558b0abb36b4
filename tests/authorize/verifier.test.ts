import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Verifier } from '../../src/authorize/verifier.ts';
import type { RateLimiter } from '../../src/limiter/rate-limiter.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import type { CompletedRequest } from '../../src/usage/usage-buffer.ts';
import { plan } from '../proxy/support/gateway.ts';
import { InMemoryKeys } from '../proxy/support/in-memory-keys.ts';
import { InProcessGateway } from '../support/in-process-gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';

const secret = createSecret('tg', systemRandom);
const unlimited = createSecret('tg', systemRandom);
const recorded: CompletedRequest[] = [];
const observed: unknown[] = [];
const away: RateLimiter = {
  decide: (_subject, decided) => decided({ kind: 'unavailable', cause: new Error('away') }),
};

let gateway: InProcessGateway;
let keys: InMemoryKeys;
beforeAll(() => {
  gateway = new InProcessGateway({
    clock: new ManualClock(1_700_000_000_000),
    log: pino({ level: 'silent' }),
  });
  keys = new InMemoryKeys(gateway.counting.versions);
  const one = {
    ...{ keyId: 'key_one', version: '1.1', enabled: true, expiresAtMs: null, plan: plan(3) },
    ...{ restrictions: null, secretVersion: 1, previousSecret: null },
    owner: { name: 'one', externalId: null, tags: ['eu'], metadata: null },
  };
  keys.snapshots.set(secret, one);
  keys.snapshots.set(unlimited, { ...one, keyId: 'key_unlimited', plan: null });
});
afterAll(() => gateway?.stop());

async function verifierWith(limiter = gateway.counting.limiter): Promise<Verifier> {
  const { options } = await gateway.proxied({
    records: keys.records,
    keys: keys.cache(),
    usage: { recorder: { record: (request) => recorded.push(request) } },
    observers: { proxied: () => {} },
  });
  return new Verifier({
    decision: { ...options, limiter },
    observe: (summary) => observed.push(summary.outcome),
  });
}

const service = { id: 'adm_one', onlyTags: [] };

describe('the verifier', () => {
  it('bounds the wrong secrets of each client, and always allows valid ones', async () => {
    const verifier = await verifierWith();
    const guesses = Array.from({ length: 1100 }, (_, i) => verifier.verify({ secret: `tg_${i}` }, service));
    const codes = new Set((await Promise.all(guesses)).map(({ code }) => code));
    expect([...codes]).toEqual(['invalid_api_key', 'too_many_requests']);
    const valid = await verifier.verify({ secret, count: false }, service);
    expect([valid.allowed, valid.key?.keyId]).toEqual([true, 'key_one']);
    const other = await verifier.verify({ secret: 'tg_0' }, { id: 'adm_two', onlyTags: [] });
    expect([other.code, other.key]).toEqual(['invalid_api_key', undefined]);
  });

  it('records and observes a counted request once, and another one not at all', async () => {
    const verifier = await verifierWith();
    recorded.length = 0;
    observed.length = 0;
    await verifier.verify({ secret, path: '/jobs?secret=x', method: 'POST', cost: 2, count: false }, service);
    expect([recorded, observed]).toEqual([[], []]);
    await verifier.verify({ secret, path: '/jobs?secret=x', method: 'POST', cost: 3 }, service);
    const limited = await verifier.verify({ secret, cost: 1 }, service);
    expect([limited.status, limited.code, limited.windows[0]?.used]).toEqual([429, 'limited', 3]);
    expect(recorded.map(({ endpoint, status, successful }) => [endpoint, status, successful])).toEqual([
      ['/jobs', 200, true],
      ['/', 429, false],
    ]);
    expect(observed).toEqual(['allowed', 'limited']);
  });

  it('records what a request costs also where its key has no plan', async () => {
    const verifier = await verifierWith();
    recorded.length = 0;
    for (const fields of [{ cost: 500 }, { cost: 0 }, {}])
      await verifier.verify({ secret: unlimited, ...fields }, service);
    expect(recorded.map(({ units }) => units)).toEqual([500, 0, 1]);
  });

  it('rejects with the error of the proxy while a store is away', async () => {
    const verifier = await verifierWith(away);
    await expect(verifier.verify({ secret }, service)).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('looks up nothing for a text that can be no secret, however long it is', async () => {
    const verifier = await verifierWith();
    keys.isDown = true;
    try {
      for (const text of ['', 'no secret', 'x'.repeat(513), 'x'.repeat(60_000)])
        expect(await verifier.verify({ secret: text }, service)).toMatchObject({ code: 'invalid_api_key' });
      await expect(verifier.verify({ secret: 'x'.repeat(512) }, service)).rejects.toMatchObject({
        code: 'store_unavailable',
      });
    } finally {
      keys.isDown = false;
    }
  });

  it('has keys without the tags of the client for unknown', async () => {
    const verifier = await verifierWith();
    const verdict = await verifier.verify({ secret, cost: 0 }, { ...service, onlyTags: ['eu', 'us'] });
    expect([verdict.status, verdict.code, verdict.key]).toEqual([401, 'invalid_api_key', undefined]);
  });
});
