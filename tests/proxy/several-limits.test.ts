import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { planOf } from './support/gateway.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

function field(response: string, name: string): string | undefined {
  return new RegExp(`^${name}: ([^\r]*)`, 'im').exec(response)?.[1];
}

describe('a key under several limits', () => {
  const stage = withGateway();

  async function use(request = 'GET /', ...lines: readonly string[]): Promise<string> {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head(request, 'Connection: close', ...lines));
    return client.ended();
  }

  function statusOf(response: string): number {
    return Number(response.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
  }

  it('gets every enforced window in the headers, and the tightest in the older ones', async () => {
    const plan = planOf({
      limit: 1000,
      additionalLimits: [
        { limitId: 'burst', limit: 10, period: 'minute' },
        { limitId: 'next', limit: 5, period: 'minute', mode: 'shadow' },
        { limitId: 'search', limit: 3, period: 'day', match: [{ methods: ['POST'], path: '/search/**' }] },
      ],
    });
    await stage.gateway.change({ plan });
    const plain = await use();
    expect(field(plain, 'RateLimit-Policy')).toBe('"test-plan";q=1000;w=3600, "test-plan.burst";q=10;w=60');
    expect(field(plain, 'RateLimit')).toMatch(/^"test-plan";r=999;t=\d+, "test-plan.burst";r=9;t=\d+$/);
    expect(field(plain, 'X-RateLimit-Limit')).toBe('10');
    expect(field(plain, 'X-RateLimit-Remaining')).toBe('9');
    const search = await use('POST /search/a', 'Content-Length: 0');
    expect(field(search, 'RateLimit-Policy')).toContain(', "test-plan.search";q=3;w=86400');
    expect(field(search, 'X-RateLimit-Limit')).toBe('3');
    expect(field(search, 'X-RateLimit-Remaining')).toBe('2');
  });

  it('is limited by the window without room, and a rejected request costs nothing', async () => {
    const plan = planOf({
      limit: 5,
      additionalLimits: [
        { limitId: 'search', limit: 1, period: 'day', match: [{ path: '/search' }] },
        { limitId: 'export', limit: 1, period: 'week', match: [{ path: '/search' }] },
      ],
    });
    await stage.gateway.change({ plan });
    expect(statusOf(await use('GET /search'))).toBe(200);
    const limited = await use('GET /search?again');
    expect(statusOf(limited)).toBe(429);
    const body = JSON.parse(limited.slice(limited.indexOf('\r\n\r\n') + 4));
    expect(Object.keys(body)).toEqual(['error', 'limit', 'period', 'remaining', 'resetTime']);
    expect(body).toMatchObject({ limit: 1, period: 'week', remaining: 0 });
    expect(Number(field(limited, 'Retry-After'))).toBeGreaterThan(6 * 86_400);
    expect(field(limited, 'RateLimit')).toMatch(/^"test-plan";r=4;/);
    for (let left = 3; left >= 0; left -= 1) {
      expect(field(await use('GET /other'), 'RateLimit')).toContain(`"test-plan";r=${left};`);
    }
    await until(() => stage.gateway.observed.length === 6);
    expect(stage.gateway.observed[1]).toMatchObject({ outcome: 'limited', limitId: 'export' });
  });

  it('pays for each request what the first matching cost says', async () => {
    const plan = planOf({
      limit: 10,
      costs: [
        { methods: ['POST'], path: '/batch/**', cost: 6 },
        { path: '/ping', cost: 0 },
      ],
    });
    await stage.gateway.change({ plan });
    const left = async (request: string) =>
      field(await use(request, 'Content-Length: 0'), 'X-RateLimit-Remaining');
    expect(await left('POST /batch/a')).toBe('4');
    expect(await left('GET /batch/a')).toBe('3');
    expect(await left('GET /ping')).toBe('3');
    expect(statusOf(await use('POST /batch', 'Content-Length: 0'))).toBe(429);
    expect(await left('GET /a')).toBe('2');
    await use('GET /a');
    await use('GET /a');
    expect(statusOf(await use('GET /a'))).toBe(429);
    expect(statusOf(await use('GET /ping'))).toBe(200);
    await until(() => stage.gateway.recorded.length === 9);
    expect(stage.gateway.recorded.map(({ units }) => units)).toEqual([6, 1, 0, 0, 1, 1, 1, 0, 0]);
  });

  it('has a window for each customer, and one for those without a valid name', async () => {
    const additionalLimits = [{ limitId: 'tenant', limit: 1, period: 'day', per: 'customer' as const }];
    await stage.gateway.change({ plan: planOf({ limit: 100, additionalLimits }) });
    expect(statusOf(await use('GET /', 'X-Customer-Id: acme'))).toBe(200);
    expect(statusOf(await use('GET /', 'X-Customer-Id: acme'))).toBe(429);
    expect(statusOf(await use('GET /', 'X-Customer-Id: other'))).toBe(200);
    expect(statusOf(await use('GET /'))).toBe(200);
    expect(statusOf(await use('GET /', `X-Customer-Id: ${'x'.repeat(129)}`))).toBe(429);
    expect(statusOf(await use('GET /', 'X-Customer-Id: anonymous'))).toBe(429);
  });

  it('is never limited by a shadow limit, which tells whom it would have rejected', async () => {
    const additionalLimits = [{ limitId: 'next', limit: 1, period: 'hour', mode: 'shadow' as const }];
    await stage.gateway.change({ plan: planOf({ limit: 2, additionalLimits }) });
    expect(statusOf(await use())).toBe(200);
    expect(statusOf(await use())).toBe(200);
    expect(statusOf(await use())).toBe(429);
    await until(() => stage.gateway.observed.length === 3);
    expect(stage.gateway.observed.map(({ shadowLimitIds }) => shadowLimitIds)).toEqual([[], ['next'], []]);
    expect(stage.gateway.recorded).toMatchObject([
      { rateLimited: false, shadowLimited: 0 },
      { rateLimited: false, shadowLimited: 1 },
      { rateLimited: true, shadowLimited: 0 },
    ]);
  });

  it('counts every spelling of a path in the limit, also by HEAD, and no other path', async () => {
    const match = [{ methods: ['GET'], path: '/search' }];
    const shadow = { limitId: 'next', limit: 2, period: 'day', mode: 'shadow' as const, match };
    const additionalLimits = [{ limitId: 'search', limit: 4, period: 'day', match }, shadow];
    await stage.gateway.change({ plan: planOf({ limit: 100, additionalLimits }) });
    for (const request of ['GET /Search', 'GET /%73earch', 'GET /search;a/', 'HEAD //search'])
      expect(statusOf(await use(request))).toBe(200);
    for (const request of ['GET /search', 'GET /SEARCH', 'HEAD /search'])
      expect(statusOf(await use(request))).toBe(429);
    for (const request of ['GET /searches', 'GET /search/x', 'POST /search'])
      expect(statusOf(await use(request, 'Content-Length: 0'))).toBe(200);
    await until(() => stage.gateway.recorded.length === 10);
    expect(stage.gateway.recorded.filter(({ shadowLimited }) => shadowLimited > 0)).toHaveLength(2);
  });

  it('keeps the count of a limit through an edit of its number, and of the others', async () => {
    const terms = (limit: number) =>
      planOf({ limit: 100, additionalLimits: [{ limitId: 'burst', limit, period: 'hour' }] });
    await stage.gateway.change({ plan: terms(2) });
    await use();
    await use();
    expect(statusOf(await use())).toBe(429);
    await stage.gateway.change({ plan: terms(3) });
    const allowed = await use();
    expect(statusOf(allowed)).toBe(200);
    expect(field(allowed, 'RateLimit')).toMatch(/^"test-plan";r=97;.*"test-plan.burst";r=0;/);
  });
});
