import { describe, expect, it } from '@jest/globals';
import { counted } from '../support/limiter-stores.ts';
import { until } from '../support/until.ts';
import { plan } from './support/gateway.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** The value of a field of the first response in `text`. */
function field(text: string, name: string): string | undefined {
  return new RegExp(`\r\n${name}: ([^\r\n]*)`, 'i').exec(text)?.[1];
}

function bodyOf(text: string): Record<string, unknown> {
  return JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4));
}

describe('the key of a request', () => {
  const stage = withGateway();

  async function responseTo(...lines: readonly string[]): Promise<string> {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(
      ['GET /a HTTP/1.1', 'Host: a', 'Connection: close', ...lines, '', ''].join('\r\n'),
    );
    return client.ended();
  }

  it.each<readonly [string, string | undefined, string]>([
    ['none', undefined, 'missing_api_key'],
    ['another scheme', 'Authorization: Basic abc', 'missing_api_key'],
    ['an empty credential', 'Authorization: Bearer', 'invalid_api_key'],
    ['garbage', 'Authorization: Bearer garbage', 'invalid_api_key'],
    ['two words', 'Authorization: Bearer a b', 'invalid_api_key'],
    ['a wrong secret', 'Authorization: Bearer tg_000000000000000000000000000000000000', 'invalid_api_key'],
  ])('%s is 401, reaches no backend, and counts for no key', async (_what, line, code) => {
    const response = await responseTo(...(line === undefined ? [] : [line]));
    expect(response).toMatch(/^HTTP\/1\.1 401 /);
    expect(bodyOf(response)).toMatchObject({ code });
    const challenge =
      code === 'missing_api_key'
        ? 'Bearer realm="tollgate"'
        : 'Bearer realm="tollgate", error="invalid_token"';
    expect(field(response, 'WWW-Authenticate')).toBe(challenge);
    expect(response).not.toMatch(/ratelimit/i);
    expect(stage.backend.received).toBe('');
    await until(() => stage.gateway.observed.length === 1);
    expect(stage.gateway.recorded).toEqual([]);
    expect(stage.gateway.observed).toMatchObject([
      { status: 401, outcome: 'unauthenticated', errorCode: code, keyId: undefined },
    ]);
  });

  it.each([
    ['none', '', 'missing_api_key'],
    ['a root token', 'Authorization: Bearer the-root-token-of-somebody-0123456789\r\n', 'invalid_api_key'],
  ])('%s on a path like one of management is 401 that names that one', async (_what, line, code) => {
    const client = await stage.gateway.send(`GET /rate-limits/gold?x HTTP/1.1\r\nHost: a\r\n${line}\r\n`);
    const { error, ...rest } = bodyOf(await client.until((text) => text.endsWith('}')));
    expect(error).toMatch(/\. The management interface has \/rate-limit, on ADMIN_PORT where that is set\.$/);
    expect(rest).toEqual({ code });
    stage.backend.respond(OK);
    client.send(stage.gateway.head('GET /rate-limits/gold?x'));
    await client.until((text) => text.endsWith('ok'));
  });

  it('is read from no other place', async () => {
    const { secret } = stage.gateway;
    expect(await responseTo(`x-api-key: ${secret}`)).toMatch(/^HTTP\/1\.1 401 /);
    expect(await responseTo(`Cookie: x-api-key=${secret}`)).toMatch(/^HTTP\/1\.1 401 /);
    const client = await stage.gateway.send(`GET /?api_key=${secret} HTTP/1.1\r\nHost: a\r\n\r\n`);
    expect(await client.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('may have its scheme in any case', async () => {
    expect(await responseTo(`Authorization: bEARER   ${stage.gateway.secret}`)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each([
    ['hears of changes', false],
    ['hears of none', true],
  ])(
    'disabled, expired, deleted: effective with the next request, if the replica %s',
    async (_what, isFeedSilent) => {
      stage.gateway.isFeedSilent = isFeedSilent;
      const use = (): Promise<string> => responseTo(`Authorization: Bearer ${stage.gateway.secret}`);
      expect(await use()).toMatch(/^HTTP\/1\.1 200 /);
      await stage.gateway.change({ enabled: false });
      expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
      await stage.gateway.change({ enabled: true });
      expect(await use()).toMatch(/^HTTP\/1\.1 200 /);
      await stage.gateway.change({ expiresAtMs: Date.now() - 1 });
      expect(bodyOf(await use())).toMatchObject({ code: 'key_expired' });
      await stage.gateway.change({ expiresAtMs: Date.now() + 60_000 });
      expect(await use()).toMatch(/^HTTP\/1\.1 200 /);
      await stage.gateway.delete();
      expect(bodyOf(await use())).toMatchObject({ code: 'invalid_api_key' });
      await until(() => stage.gateway.observed.length === 6);
      expect(stage.gateway.recorded).toHaveLength(3);
    },
  );

  it('that can not be looked up is 503, never 401', async () => {
    stage.gateway.keyStore.isDown = true;
    const response = await responseTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(response).toMatch(/^HTTP\/1\.1 503 /);
    expect(bodyOf(response)).toMatchObject({ code: 'store_unavailable' });
    expect(field(response, 'Retry-After')).toBe('1');
    expect(stage.gateway.recorded).toEqual([]);
  });

  it('that is found after the response to a malformed body counts nothing against its limit', async () => {
    stage.gateway.keyStore.hold();
    const malformed = await stage.gateway.send(stage.gateway.head('POST /', 'Transfer-Encoding: chunked'));
    malformed.send('no chunk\r\n');
    expect(await malformed.ended()).toMatch(/^HTTP\/1\.1 400 /);
    stage.gateway.keyStore.release();
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded).toMatchObject([{ successful: false, units: 0 }]);
    const next = await responseTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(field(next, 'X-RateLimit-Remaining')).toBe('999999');
  });

  it('that is not found in time is 503, and what is found later counts nothing', async () => {
    const use = (): Promise<string> => responseTo(`Authorization: Bearer ${stage.gateway.secret}`);
    stage.gateway.keyStore.hold();
    expect(bodyOf(await use())).toMatchObject({ code: 'store_unavailable' });
    stage.gateway.keyStore.release();
    expect(field(await use(), 'X-RateLimit-Remaining')).toBe('999999');
    expect(stage.gateway.recorded).toHaveLength(1);
  });

  it('that was changed and is not read again in time is 503, and counts nothing', async () => {
    const use = (): Promise<string> => responseTo(`Authorization: Bearer ${stage.gateway.secret}`);
    stage.gateway.isFeedSilent = true;
    expect(await use()).toMatch(/^HTTP\/1\.1 200 /);
    await stage.gateway.change({ plan: plan(7) });
    stage.gateway.keyStore.hold();
    expect(bodyOf(await use())).toMatchObject({ code: 'store_unavailable' });
    stage.gateway.keyStore.release();
    expect(field(await use(), 'X-RateLimit-Remaining')).toBe('5');
    expect(stage.gateway.recorded).toHaveLength(2);
  });

  it('disabled, and used again and again, is read once and recorded for no key', async () => {
    stage.gateway.isFeedSilent = true;
    await stage.gateway.change({ enabled: false, plan: plan(1) });
    const use = (): Promise<string> => responseTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
    stage.gateway.keyStore.isDown = true;
    for (let i = 0; i < 3; i++) expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
    stage.gateway.keyStore.isDown = false;
    await stage.gateway.change({ enabled: true });
    expect(field(await use(), 'X-RateLimit-Remaining')).toBe('0');
    expect(stage.gateway.recorded).toHaveLength(1);
  });

  it('disabled before any replica knew of it is read once as well', async () => {
    const known = stage.gateway.keyStore.snapshots.get(stage.gateway.secret);
    if (known === undefined) throw new Error('no key');
    stage.gateway.keyStore.snapshots.set(stage.gateway.secret, { ...known, enabled: false });
    const use = (): Promise<string> => responseTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
    stage.gateway.keyStore.isDown = true;
    expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
  });

  it('disabled, and changed while it can not be read, is 503, never 401', async () => {
    stage.gateway.isFeedSilent = true;
    await stage.gateway.change({ enabled: false });
    const use = (): Promise<string> => responseTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(await use()).toMatch(/^HTTP\/1\.1 401 /);
    await stage.gateway.change({ enabled: true });
    stage.gateway.keyStore.isDown = true;
    expect(bodyOf(await use())).toMatchObject({ code: 'store_unavailable' });
    expect(stage.gateway.recorded).toEqual([]);
  });

  it('known to this replica works without the record store', async () => {
    const line = `Authorization: Bearer ${stage.gateway.secret}`;
    await responseTo(line);
    stage.gateway.keyStore.isDown = true;
    expect(await responseTo(line)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('the limit of a key', () => {
  const stage = withGateway();

  async function use(path = '/a'): Promise<string> {
    stage.backend.respond(
      'HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 7\r\nratelimit: "other";r=1\r\nRateLimit-Policy: "o";q=1\r\nX-RateLimit-Reset: 1\r\nContent-Length: 2\r\n\r\nok',
    );
    const client = await stage.gateway.send(stage.gateway.head(`GET ${path}`, 'Connection: close'));
    return client.ended();
  }

  it('is in the headers of every response, in place of those of the backend', async () => {
    await stage.gateway.change({ plan: plan(2, '15 minutes') });
    const startedAtMs = Date.now();
    const response = await use();
    expect(field(response, 'RateLimit-Policy')).toBe('"test-plan";q=2;w=900');
    expect(field(response, 'RateLimit')).toMatch(/^"test-plan";r=1;t=(?:900|899)$/);
    expect(field(response, 'X-RateLimit-Limit')).toBe('2');
    expect(field(response, 'X-RateLimit-Remaining')).toBe('1');
    const reset = Number(field(response, 'X-RateLimit-Reset'));
    expect(reset * 1000).toBeGreaterThanOrEqual(startedAtMs + 900_000);
    // Rounded up to a whole second.
    expect(reset * 1000).toBeLessThan(Date.now() + 901_000);
    expect(response.match(/ratelimit/gi)).toHaveLength(5);
  });

  it('allows exactly that many requests, then responds with a 429 of five fields', async () => {
    await stage.gateway.change({ plan: plan(2, 'PT15M') });
    const startedAtMs = Date.now();
    expect(await use()).toMatch(/^HTTP\/1\.1 200 /);
    expect(await use()).toMatch(/^HTTP\/1\.1 200 /);
    const limited = await use('/limited?secret=1');
    expect(limited).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n/);
    const body = bodyOf(limited);
    expect(Object.keys(body)).toEqual(['error', 'limit', 'period', 'remaining', 'resetTime']);
    expect(body).toMatchObject({ limit: 2, period: 'PT15M', remaining: 0 });
    expect(body.resetTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(Date.parse(String(body.resetTime)) / 1000).toBe(Number(field(limited, 'X-RateLimit-Reset')));
    expect(field(limited, 'RateLimit')).toMatch(/^"test-plan";r=0;t=\d+$/);
    const elapsedS = (Date.now() - startedAtMs) / 1000;
    expect(Number(field(limited, 'Retry-After'))).toBeGreaterThanOrEqual(900 - Math.ceil(elapsedS));
    expect(Number(field(limited, 'Retry-After'))).toBeLessThanOrEqual(900);
    expect(stage.backend.received).not.toContain('limited');
    await until(() => stage.gateway.recorded.length === 3);
    expect(stage.gateway.recorded[2]).toMatchObject({
      endpoint: '/limited',
      successful: false,
      responseTimeMs: null,
    });
    expect(stage.gateway.observed[2]).toMatchObject({ status: 429, outcome: 'limited' });
  });

  it('counts each key for itself', async () => {
    await stage.gateway.change({ plan: plan(1) });
    await use();
    expect(await use()).toMatch(/^HTTP\/1\.1 429 /);
    const other = await stage.gateway.send(
      stage.gateway
        .head('GET /', 'Connection: close')
        .replace(stage.gateway.secret, stage.gateway.otherSecret),
    );
    expect(await other.ended()).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('of a key without one is neither sent nor enforced, and a request costs one unit', async () => {
    await stage.gateway.change({ plan: null });
    const response = await use();
    expect(response).toMatch(/^HTTP\/1\.1 200 /);
    expect(response).not.toMatch(/ratelimit/i);
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded[0]?.units).toBe(1);
  });

  it('is in the headers of a 502 as well', async () => {
    await stage.backend.stop();
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
    const response = await client.ended();
    expect(response).toMatch(/^HTTP\/1\.1 502 /);
    expect(response.match(/ratelimit/gi)).toHaveLength(5);
  });
});

describe('a limiter that can not tell', () => {
  const stage = withGateway({
    limiter: {
      decide: (_subject, decided) => decided({ kind: 'unavailable', cause: new Error('gone') }),
    },
  });
  it('makes a 503 with Retry-After, which is recorded', async () => {
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
    const response = await client.ended();
    expect(response).toMatch(/^HTTP\/1\.1 503 .*"store_unavailable"/s);
    expect(field(response, 'Retry-After')).toBe('1');
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded).toMatchObject([{ successful: false, responseTimeMs: null }]);
    expect(stage.backend.received).toBe('');
  });
});

describe('a degraded limiter', () => {
  const stage = withGateway({
    limiter: {
      decide: (_subject, decided) => decided(counted('allowed', { degraded: true })),
    },
  });
  it('gives a response without rate-limit headers', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
    expect(await client.ended()).not.toMatch(/ratelimit/i);
  });
});

describe('a window with more left than a structured field can say', () => {
  const stage = withGateway({
    limiter: {
      decide: (_subject, decided) => decided(counted('allowed', { used: -999_999_999_999_999 })),
    },
  });
  it('shows the largest integer that a field can have', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
    const response = await client.ended();
    expect(field(response, 'RateLimit')).toMatch(/^"test-plan";r=999999999999999;t=/);
    expect(field(response, 'X-RateLimit-Remaining')).toBe('999999999999999');
  });
});

describe('the record of a request', () => {
  const stage = withGateway();

  it('is made once for each, with path, customer and result', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.connect();
    client.send(stage.gateway.head('GET /a/b?secret=1', 'X-Customer-Id: acme 1'));
    await client.until((text) => text.endsWith('ok'));
    stage.backend.respond(OK.replace('200 OK', '404 Not Found'));
    client.send(stage.gateway.head('GET /%41', 'X-Customer-Id: \xe9'));
    await client.until((text) => text.split('\r\n\r\nok').length === 3);
    stage.backend.respond(OK.replace('200 OK', '399 X'));
    client.send(stage.gateway.head(`GET /${'x'.repeat(300)}`, `X-Customer-Id: ${'x'.repeat(129)}`));
    await client.until((text) => text.split('\r\n\r\nok').length === 4);
    await until(() => stage.gateway.recorded.length === 3);
    expect(stage.gateway.recorded).toMatchObject([
      { keyId: 'key_one', endpoint: '/a/b', customerId: 'acme 1', successful: true },
      { keyId: 'key_one', endpoint: '/%41', customerId: 'anonymous', successful: false },
      { endpoint: `/${'x'.repeat(300)}`, customerId: 'anonymous', successful: true },
    ]);
    for (const { responseTimeMs } of stage.gateway.recorded) expect(responseTimeMs).toBeGreaterThan(0);
  });

  it('counts pipelined requests in order', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(
      stage.gateway.head('GET /1') + stage.gateway.head('GET /2') + stage.gateway.head('GET /3'),
    );
    await client.until((text) => text.split('\r\n\r\nok').length === 4);
    await until(() => stage.gateway.recorded.length === 3);
    expect(stage.gateway.recorded.map(({ endpoint }) => endpoint)).toEqual(['/1', '/2', '/3']);
  });
});
