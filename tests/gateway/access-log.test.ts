import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { versionKeyName } from '../../src/storage/redis/redis-key-names.ts';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, ROOT_TOKEN, type RunningGateway, startGateway } from '../support/gateway.ts';
import { onRedis } from '../support/on-redis.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
/** Beside the first, with more ports and a backend that is not there. */
let second: GatewayProcess;
/** Beside the first, without Postgres. */
let unknowing: GatewayProcess;
/** A port at which nothing listens. */
let nowhere: number;
const others: GatewayProcess[] = [];

beforeAll(async () => {
  fleet = await startFleet(1, { AUTHORIZE_PORT: '0' }, (req, res) => {
    if (req.url === '/reset') req.socket.destroy();
    else if (req.url?.startsWith('/error')) res.writeHead(500).end('no');
    else res.end('four');
  });
  nowhere = await freePort();
  second = await another({
    ...{ ADMIN_PORT: '0', AUTHORIZE_TOKEN: 'token-of-the-gateway-in-front' },
    BACKEND_URL: `http://127.0.0.1:${nowhere}`,
  });
  const withoutPostgres = { DATABASE_URL: 'postgres://tollgate:none@127.0.0.1:1/tollgate' };
  unknowing = await another(withoutPostgres, { isReady: false });
});
afterAll(async () => {
  await Promise.all(others.map((other) => other.stop()));
  await fleet?.stop();
});

/** A replica beside the first, with settings of its own. */
async function another(
  settings: Readonly<Record<string, string>>,
  options: Parameters<typeof startGateway>[1] = {},
): Promise<GatewayProcess> {
  const gateway = await startGateway({ ...fleet.environment, ...settings }, options);
  others.push(gateway);
  return gateway;
}

/** What each line of the log has. */
const OF_EACH_LINE = ['level', 'time', 'service', 'pid', 'msg'];

type Line = Readonly<Record<string, unknown>>;

/** The lines about requests that a process has written. */
function linesOf(gateway: RunningGateway | undefined): readonly Line[] {
  return (gateway?.output() ?? '')
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line)
    .filter(({ msg }) => msg === 'request');
}

/** The line of the request with this id. */
async function lineOf(gateway: RunningGateway | undefined, requestId: string): Promise<Line> {
  const find = () => linesOf(gateway).find((line) => line.requestId === requestId);
  await until(() => find() !== undefined);
  return find() ?? {};
}

/** Sends a request with a name. */
async function send(
  path: string,
  requestId: string,
  credential?: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(`${fleet.replicas[0]?.url}${path}`, {
    headers: {
      ...headers,
      'x-request-id': requestId,
      ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
    },
  });
  await response.arrayBuffer();
  return response;
}

describe('the access log', () => {
  it('says of a key that Postgres has again while Redis knows that it was deleted what is wrong', async () => {
    const { id, secret } = await fleet.admin.makeKey('restored');
    await onRedis(fleet.redisUrl, (redis) => redis.set(versionKeyName(id), '-', 'PX', 60_000));
    expect((await send('/v1/things', 'restored-1', secret)).status).toBe(503);
    expect(await lineOf(fleet.replicas[0], 'restored-1')).toMatchObject({
      outcome: 'unavailable',
      errorCode: 'store_unavailable',
      cause: 'DeletedInRedis',
    });
  });

  it('has a line for each proxied request, with key, status, timings and decision', async () => {
    await fleet.admin.makePlan('two', 2, 'hour');
    const { id, secret } = await fleet.admin.makeKey('logged', 'two');
    const response = await send('/v1/things?token=private', 'allowed-1', secret);
    expect(response.headers.get('x-request-id')).toBe('allowed-1');
    await send('/reset', 'reset-1', secret);
    await send('/v1/things', 'limited-1', secret);
    await send('/v1/things', 'unknown-1');
    const [replica] = fleet.replicas;
    expect(await lineOf(replica, 'allowed-1')).toMatchObject({
      level: 30,
      method: 'GET',
      path: '/v1/things',
      route: 'backend',
      keyId: id,
      status: 200,
      outcome: 'forwarded',
      decision: 'allowed',
      bytes: 4,
      durationMs: expect.any(Number),
      gatewayMs: expect.any(Number),
    });
    expect(await lineOf(replica, 'reset-1')).toMatchObject({
      keyId: id,
      status: 502,
      outcome: 'backend_error',
      errorCode: 'bad_gateway',
      cause: 'closed before the response',
      backend: new URL(fleet.environment.BACKEND_URL ?? '').host,
      attempts: expect.any(Number),
    });
    expect(await lineOf(replica, 'limited-1')).toMatchObject({
      keyId: id,
      status: 429,
      outcome: 'limited',
      decision: 'limited',
      bytes: 0,
    });
    const unknown = await lineOf(replica, 'unknown-1');
    expect(unknown).toMatchObject({ status: 401, outcome: 'unauthenticated', errorCode: 'missing_api_key' });
    expect(unknown).not.toHaveProperty('keyId');
  });

  it('has a line for each management request, whose response names it too', async () => {
    const response = await send(
      '/consumer-api-key/key_unknown/usage?rateLimitId=private',
      'managed-1',
      ROOT_TOKEN,
    );
    expect([response.status, response.headers.get('x-request-id')]).toEqual([404, 'managed-1']);
    expect(await lineOf(fleet.replicas[0], 'managed-1')).toMatchObject({
      route: 'management',
      method: 'GET',
      path: '/consumer-api-key/key_unknown/usage',
      status: 404,
      operation: 'showConsumerKeyUsage',
      outcome: 'invalid_request',
      errorCode: 'key_not_found',
      actor: 'root',
    });
  });

  it('has a line for a request rejected for its head, with the id of its response', async () => {
    const response = await send('/x', 'rejected-1', undefined, { via: '1.1 tollgate' });
    expect([response.status, response.headers.get('x-request-id')]).toEqual([508, 'rejected-1']);
    const { level, time, service, pid, msg, ...members } = await lineOf(fleet.replicas[0], 'rejected-1');
    expect(members).toEqual({
      requestId: 'rejected-1',
      status: 508,
      outcome: 'invalid_request',
      errorCode: 'loop_detected',
    });
  });

  it('has a line for a head that was rejected at ADMIN_PORT, and the metrics count it', async () => {
    const adminPort = /"adminPort":(\d+)/.exec(second.output())?.[1];
    const headers = { 'x-request-id': 'at-admin-1', via: '1.1 tollgate' };
    expect((await fetch(`http://127.0.0.1:${adminPort}/rate-limit`, { headers })).status).toBe(508);
    expect(await lineOf(second, 'at-admin-1')).toMatchObject({
      route: 'management',
      status: 508,
      outcome: 'invalid_request',
      errorCode: 'loop_detected',
    });
    const metrics = await (await fetch(`${second.opsUrl}/metrics`)).text();
    expect(metrics).toMatch(
      /^tollgate_management_requests_total\{outcome="invalid_request",operation="none"\} 1$/m,
    );
    expect(metrics).not.toMatch(/^tollgate_requests_total\{/m);
  });

  it('says of a call with a wrong AUTHORIZE_TOKEN that it is unauthenticated', async () => {
    const headers = { 'x-request-id': 'token-1', 'tollgate-authorize-token': 'token-before-the-rotation' };
    expect((await fetch(`${second.authorizeUrl}/authorize/envoy/`, { headers })).status).toBe(401);
    expect(await lineOf(second, 'token-1')).toMatchObject({
      route: 'authorize',
      status: 401,
      outcome: 'unauthenticated',
      errorCode: 'invalid_authorize_token',
    });
  });

  it('says why the backend can not be reached, and once when that begins and ends', async () => {
    const { secret } = await fleet.admin.makeKey('unreachable');
    const events = (event: string) =>
      second
        .output()
        .split('\n')
        .filter((line) => line.includes(`"event":"${event}"`)).length;
    const statuses = [await statusOf(second.url, secret), await statusOf(second.url, secret)];
    expect(statuses).toEqual([502, 502]);
    const lines = () => linesOf(second).filter(({ cause }) => cause === 'ECONNREFUSED');
    await until(() => lines().length === 2);
    expect(lines()[0]).toMatchObject({ status: 502, backend: `127.0.0.1:${nowhere}`, attempts: 1 });
    expect([events('backend_unreachable'), events('backend_reachable')]).toEqual([1, 0]);

    const backend = createServer((_req, res) => res.end('ok')).listen(nowhere, '127.0.0.1');
    try {
      await until(async () => {
        expect(await statusOf(second.url, secret)).toBe(200);
        return events('backend_reachable') === 1;
      });
      expect(events('backend_unreachable')).toBe(1);
    } finally {
      backend.closeAllConnections();
      backend.close();
    }
  });

  it('names the store that did not respond, and not the backend', async () => {
    const { secret } = await fleet.admin.makeKey('of another store');
    expect(await statusOf(`${unknowing.url}/down`, secret)).toBe(503);
    await until(() => linesOf(unknowing).length === 1);
    const [line] = linesOf(unknowing);
    expect(line).toMatchObject({ errorCode: 'store_unavailable', store: 'postgres', cause: 'ECONNREFUSED' });
    expect(line).not.toHaveProperty('backend');
  });

  it('shows no credential, wherever a client puts one', async () => {
    const { secret } = await fleet.admin.makeKey('careless');
    const encoded = `%${secret.charCodeAt(0).toString(16)}${secret.slice(1)}`;
    for (const path of [`/a/${secret}/b`, `/a/${encoded}/b`, `/x-${secret}`, `/a/${ROOT_TOKEN}/b`]) {
      await send(path, secret, secret);
      const response = await send(path, 'the-last-one', secret);
      expect(response.status).toBe(200);
    }
    await send('/as-an-id', ROOT_TOKEN, secret);
    await send('/after-all', 'careless-1', secret);
    await lineOf(fleet.replicas[0], 'careless-1');
    const output = fleet.replicas[0]?.output() ?? '';
    expect(output).toContain('"path":"/a/***/b"');
    for (const text of [secret, secret.slice(5), encoded, ROOT_TOKEN, 'private'])
      expect(output).not.toContain(text);
  });

  it('has the members that docs/settings.md lists, and no others', async () => {
    const plan = { rateLimitId: 'members', description: '', limit: 1, period: 'hour' };
    const shadow = { limitId: 'next', limit: 1, period: 'day', mode: 'shadow' };
    await fleet.admin.call('POST', '/rate-limit/create', { ...plan, limit: 2, additionalLimits: [shadow] });
    const { secret } = await fleet.admin.makeKey('members', 'members');
    const [replica] = fleet.replicas;
    for (const requestId of ['members-1', 'members-2', 'members-3']) await send('/v1', requestId, secret);
    await send('/reset', 'members-reset', (await fleet.admin.makeKey('reset')).secret);
    await send('/rate-limit', 'members-managed', ROOT_TOKEN);
    await send('/tollgate/self', 'members-self', secret);
    await statusOf(`${replica?.authorizeUrl}/authorize/envoy/`, secret);
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${nowhere}` };
    const away = { REDIS_URL: `redis://127.0.0.1:${nowhere}`, REDIS_TIMEOUT_MS: '100' };
    const traced = await another({ ...settings, ...away }, { isReady: false });
    await statusOf(traced.url, secret);
    await statusOf(unknowing.url, secret);
    const ofRoute = (route: string) => linesOf(replica).some((line) => line.route === route);
    await until(() => ['management', 'self-service', 'authorize'].every(ofRoute));
    await until(() => linesOf(traced).length > 0 && linesOf(unknowing).length > 0);
    await lineOf(replica, 'members-reset');

    const guide = await readFile('docs/settings.md', 'utf8');
    const [, table = ''] = /^\| field \| \|\n\|.*\n((?:\|.*\n)+)/m.exec(guide) ?? [];
    const documented = table.split('\n').flatMap((row) => row.split(' | ')[0]?.match(/\w+(?=`)/g) ?? []);
    const seen = new Set([replica, traced, unknowing].flatMap(linesOf).flatMap(Object.keys));
    expect([...seen.difference(new Set(OF_EACH_LINE))].toSorted()).toEqual(documented.toSorted());
  });

  it('of a sample has its part of the requests, and every failure', async () => {
    const sampled = await another({ ACCESS_LOG: '0.25' });
    const { secret } = await fleet.admin.makeKey('sampled');
    for (let i = 0; i < 40; i += 1) await statusOf(`${sampled.url}/fine`, secret);
    for (let i = 0; i < 5; i += 1) await statusOf(`${sampled.url}/error`, secret);
    const count = (path: string) => linesOf(sampled).filter((line) => line.path === path).length;
    await until(() => count('/error') === 5);
    expect(count('/fine')).toBe(10);
  });

  it('is empty when it is off', async () => {
    const gateway = await another({ ACCESS_LOG: 'off' });
    const { secret } = await fleet.admin.makeKey('silent');
    expect(await statusOf(`${gateway.url}/error`, secret)).toBe(500);
    await gateway.stop();
    expect(gateway.output()).not.toContain('"msg":"request"');
  });

  it('loses no line when the gateway stops', async () => {
    const { secret } = await fleet.admin.makeKey('stopping');
    const sent = Array.from({ length: 50 }, (_, i) => statusOf(`${second.url}/last/${i}`, secret));
    await Promise.all(sent);
    expect(await second.stop()).toBe(0);
    expect(linesOf(second).filter(({ path }) => String(path).startsWith('/last/'))).toHaveLength(50);
  });
});
