import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { plan } from './support/gateway.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** The value of a field of the first answer in `text`. */
function field(text: string, name: string): string | undefined {
  return new RegExp(`\r\n${name}: ([^\r\n]*)`, 'i').exec(text)?.[1];
}

function bodyOf(text: string): Record<string, unknown> {
  return JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4));
}

describe('the key of a request', () => {
  const stage = withGateway();

  async function answerTo(...lines: readonly string[]): Promise<string> {
    stage.backend.answer(OK);
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
  ])('%s is 401, reaches no backend, and counts for nobody', async (_what, line, code) => {
    const answer = await answerTo(...(line === undefined ? [] : [line]));
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(bodyOf(answer)).toMatchObject({ code });
    const challenge =
      code === 'missing_api_key'
        ? 'Bearer realm="tollgate"'
        : 'Bearer realm="tollgate", error="invalid_token"';
    expect(field(answer, 'WWW-Authenticate')).toBe(challenge);
    expect(answer).not.toMatch(/ratelimit/i);
    expect(stage.backend.received).toBe('');
    await until(() => stage.gateway.observed.length === 1);
    expect(stage.gateway.recorded).toEqual([]);
    expect(stage.gateway.observed).toMatchObject([{ status: 401, outcome: code, keyId: undefined }]);
  });

  it('is read from no other place', async () => {
    const { secret } = stage.gateway;
    expect(await answerTo(`x-api-key: ${secret}`)).toMatch(/^HTTP\/1\.1 401 /);
    expect(await answerTo(`Cookie: x-api-key=${secret}`)).toMatch(/^HTTP\/1\.1 401 /);
    const client = await stage.gateway.send(`GET /?api_key=${secret} HTTP/1.1\r\nHost: a\r\n\r\n`);
    expect(await client.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('may have its scheme in any case', async () => {
    expect(await answerTo(`Authorization: bEARER   ${stage.gateway.secret}`)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each([
    ['is told of changes', false],
    ['is told of none', true],
  ])(
    'disabled, expired, deleted: each takes effect with the next request, and back again, where the replica %s',
    async (_what, isFeedSilent) => {
      stage.gateway.isFeedSilent = isFeedSilent;
      const use = (): Promise<string> => answerTo(`Authorization: Bearer ${stage.gateway.secret}`);
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
    stage.gateway.isStoreDown = true;
    const answer = await answerTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(bodyOf(answer)).toMatchObject({ code: 'store_unavailable' });
    expect(field(answer, 'Retry-After')).toBe('1');
    expect(stage.gateway.recorded).toEqual([]);
  });

  it('disabled, and asked for again and again, is read once and counted for nobody', async () => {
    stage.gateway.isFeedSilent = true;
    await stage.gateway.change({ enabled: false, plan: plan(1) });
    const use = (): Promise<string> => answerTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
    stage.gateway.isStoreDown = true;
    for (let i = 0; i < 3; i++) expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
    stage.gateway.isStoreDown = false;
    await stage.gateway.change({ enabled: true });
    expect(field(await use(), 'X-RateLimit-Remaining')).toBe('0');
    expect(stage.gateway.recorded).toHaveLength(1);
  });

  it('disabled before anybody knew of it is read once as well', async () => {
    const known = stage.gateway.grants.get(stage.gateway.secret);
    if (known === undefined) throw new Error('no key');
    stage.gateway.grants.set(stage.gateway.secret, { ...known, enabled: false });
    const use = (): Promise<string> => answerTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
    stage.gateway.isStoreDown = true;
    expect(bodyOf(await use())).toMatchObject({ code: 'key_disabled' });
  });

  it('disabled, and changed while it can not be read, is 503, never 401', async () => {
    stage.gateway.isFeedSilent = true;
    await stage.gateway.change({ enabled: false });
    const use = (): Promise<string> => answerTo(`Authorization: Bearer ${stage.gateway.secret}`);
    expect(await use()).toMatch(/^HTTP\/1\.1 401 /);
    await stage.gateway.change({ enabled: true });
    stage.gateway.isStoreDown = true;
    expect(bodyOf(await use())).toMatchObject({ code: 'store_unavailable' });
    expect(stage.gateway.recorded).toEqual([]);
  });

  it('known to this replica works without the record store', async () => {
    const line = `Authorization: Bearer ${stage.gateway.secret}`;
    await answerTo(line);
    stage.gateway.isStoreDown = true;
    expect(await answerTo(line)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('the limit of a key', () => {
  const stage = withGateway();

  async function use(path = '/a'): Promise<string> {
    stage.backend.answer(
      'HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 7\r\nratelimit: "other";r=1\r\nRateLimit-Policy: "o";q=1\r\nX-RateLimit-Reset: 1\r\nContent-Length: 2\r\n\r\nok',
    );
    const client = await stage.gateway.send(stage.gateway.head(`GET ${path}`, 'Connection: close'));
    return client.ended();
  }

  it('is told with every answer, in place of what the backend says of its own', async () => {
    await stage.gateway.change({ plan: plan(2, '15 minutes') });
    const startedAtMs = Date.now();
    const answer = await use();
    expect(field(answer, 'RateLimit-Policy')).toBe('"test-plan";q=2;w=900');
    expect(field(answer, 'RateLimit')).toMatch(/^"test-plan";r=1;t=(?:900|899)$/);
    expect(field(answer, 'X-RateLimit-Limit')).toBe('2');
    expect(field(answer, 'X-RateLimit-Remaining')).toBe('1');
    const reset = Number(field(answer, 'X-RateLimit-Reset'));
    expect(reset * 1000).toBeGreaterThanOrEqual(startedAtMs + 900_000);
    expect(reset * 1000).toBeLessThan(startedAtMs + 902_000);
    expect(answer.match(/ratelimit/gi)).toHaveLength(5);
  });

  it('admits exactly so many, then answers 429 with five fields and does not forward', async () => {
    await stage.gateway.change({ plan: plan(2, 'PT15M') });
    expect(await use()).toMatch(/^HTTP\/1\.1 200 /);
    expect(await use()).toMatch(/^HTTP\/1\.1 200 /);
    const denied = await use('/denied?secret=1');
    expect(denied).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n/);
    const body = bodyOf(denied);
    expect(Object.keys(body)).toEqual(['error', 'limit', 'period', 'remaining', 'resetTime']);
    expect(body).toMatchObject({ limit: 2, period: 'PT15M', remaining: 0 });
    expect(body.resetTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(Date.parse(String(body.resetTime)) / 1000).toBe(Number(field(denied, 'X-RateLimit-Reset')));
    expect(field(denied, 'RateLimit')).toMatch(/^"test-plan";r=0;t=\d+$/);
    expect(Number(field(denied, 'Retry-After'))).toBeGreaterThanOrEqual(890);
    expect(Number(field(denied, 'Retry-After'))).toBeLessThanOrEqual(900);
    expect(stage.backend.received).not.toContain('denied');
    await until(() => stage.gateway.recorded.length === 3);
    expect(stage.gateway.recorded[2]).toMatchObject({
      endpoint: '/denied',
      successful: false,
      forwardedMs: null,
    });
    expect(stage.gateway.observed[2]).toMatchObject({ status: 429, outcome: 'rate_limited' });
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

  it('of a key without one is neither told nor held', async () => {
    await stage.gateway.change({ plan: null });
    const answer = await use();
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).not.toMatch(/ratelimit/i);
  });

  it('is told with a 502 as well', async () => {
    await stage.backend.stop();
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
    const answer = await client.ended();
    expect(answer).toMatch(/^HTTP\/1\.1 502 /);
    expect(answer.match(/ratelimit/gi)).toHaveLength(5);
  });
});

describe('a limiter that can not tell', () => {
  const stage = withGateway({
    limiter: {
      decide: (_subject, decided) => decided({ kind: 'unavailable', cause: new Error('gone') }),
      peek: () => Promise.reject(new Error('gone')),
    },
  });
  it('makes a 503 with Retry-After, which is recorded', async () => {
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
    const answer = await client.ended();
    expect(answer).toMatch(/^HTTP\/1\.1 503 .*"store_unavailable"/s);
    expect(field(answer, 'Retry-After')).toBe('1');
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded).toMatchObject([{ successful: false, forwardedMs: null }]);
    expect(stage.backend.received).toBe('');
  });
});

describe('a degraded limiter', () => {
  const stage = withGateway({
    limiter: {
      decide: (_subject, decided) =>
        decided({ kind: 'admitted', remaining: 1, resetAtMs: 1000, nowMs: 0, degraded: true }),
      peek: () => Promise.reject(new Error('gone')),
    },
  });
  it('tells no numbers', async () => {
    stage.backend.answer(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
    expect(await client.ended()).not.toMatch(/ratelimit/i);
  });
});

describe('the record of a request', () => {
  const stage = withGateway();

  it('is made once for each, with path, customer and result', async () => {
    stage.backend.answer(OK);
    const client = await stage.gateway.connect();
    client.send(stage.gateway.head('GET /a/b?secret=1', 'X-Customer-Id: acme 1'));
    await client.until((text) => text.endsWith('ok'));
    stage.backend.answer(OK.replace('200 OK', '404 Not Found'));
    client.send(stage.gateway.head('GET /%41', 'X-Customer-Id: \xe9'));
    await client.until((text) => text.split('\r\n\r\nok').length === 3);
    stage.backend.answer(OK.replace('200 OK', '399 X'));
    client.send(stage.gateway.head(`GET /${'x'.repeat(300)}`, `X-Customer-Id: ${'x'.repeat(129)}`));
    await client.until((text) => text.split('\r\n\r\nok').length === 4);
    await until(() => stage.gateway.recorded.length === 3);
    expect(stage.gateway.recorded).toMatchObject([
      { keyId: 'key_one', endpoint: '/a/b', customerId: 'acme 1', successful: true },
      { keyId: 'key_one', endpoint: '/%41', customerId: 'anonymous', successful: false },
      { endpoint: `/${'x'.repeat(300)}`, customerId: 'anonymous', successful: true },
    ]);
    for (const { forwardedMs } of stage.gateway.recorded) expect(forwardedMs).toBeGreaterThan(0);
  });

  it('counts requests that a client sends behind each other, in order', async () => {
    stage.backend.answer(OK);
    const client = await stage.gateway.send(
      stage.gateway.head('GET /1') + stage.gateway.head('GET /2') + stage.gateway.head('GET /3'),
    );
    await client.until((text) => text.split('\r\n\r\nok').length === 4);
    await until(() => stage.gateway.recorded.length === 3);
    expect(stage.gateway.recorded.map(({ endpoint }) => endpoint)).toEqual(['/1', '/2', '/3']);
  });
});
