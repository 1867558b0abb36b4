import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { OUTCOMES } from '../../src/observability/outcomes.ts';
import { burst, statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { startGateway } from '../support/gateway.ts';
import { until } from '../support/until.ts';

const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

let fleet: Fleet;
let url: string;
/** Lets the backend response /wait. */
let release = (): void => {};

beforeAll(async () => {
  fleet = await startInProcessFleet(1, { METRICS_PER_KEY: 'top:1', AUTHORIZE_PORT: '0' }, (req, res) => {
    if (req.headers.upgrade !== undefined) req.socket.write(SWITCHING);
    else if (req.url === '/wait') release = () => res.end('ok');
    else if (req.url === '/missing') res.writeHead(404).end();
    else res.end('ok');
  });
  url = fleet.replicas[0]?.url ?? '';
});
afterAll(() => fleet?.stop());

async function scrape(): Promise<string> {
  return (await fetch(`${fleet.replicas[0]?.opsUrl}/metrics`)).text();
}

/** The sum of all samples of a metric whose labels have these values. */
function sum(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const samples = text.matchAll(new RegExp(`^${name}(\\{[^}]*\\})? ([0-9.e+-]+)$`, 'gm'));
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return [...samples]
    .filter(([, given = '']) => wanted.every((label) => given.includes(label)))
    .reduce((total, [, , value]) => total + Number(value), 0);
}

/** An upgraded connection, from the client's side. */
async function upgrade(secret: string): Promise<Socket> {
  const req = request(url, {
    headers: { authorization: `Bearer ${secret}`, connection: 'Upgrade', upgrade: 'websocket' },
  }).end();
  const [, socket] = (await once(req, 'upgrade')) as [IncomingMessage, Socket];
  return socket;
}

describe('the metrics', () => {
  it('count management requests by endpoint and outcome', async () => {
    const before = await scrape();
    await fleet.admin.makeKey('managed');
    await fleet.admin.call('GET', '/consumer-api-key/key_unknown');
    await fleet.admin.call('GET', '/consumer-api-key/no/such/path');
    const after = await scrape();
    const added = (operation: string, outcome: string) => {
      const [now, then] = [after, before].map((text) =>
        sum(text, 'tollgate_management_requests_total', { operation, outcome }),
      );
      return (now ?? 0) - (then ?? 0);
    };
    expect(added('createConsumerKey', 'served')).toBe(1);
    expect(added('showConsumerKey', 'invalid_request')).toBe(1);
    expect(added('none', 'invalid_request')).toBe(1);
  });

  it('count every request once, in the class that it belongs to', async () => {
    await fleet.admin.makePlan('three', 3, 'hour');
    const { secret } = await fleet.admin.makeKey('counted', 'three');
    const before = await scrape();
    await burst([url], { secret, requests: 10, inFlight: 1 });
    await statusOf(url, 'tg_wrong');
    const after = await scrape();
    const added = (name: string, labels: Readonly<Record<string, string>>) =>
      sum(after, name, labels) - sum(before, name, labels);
    expect(
      added('tollgate_requests_total', { outcome: 'forwarded', method: 'GET', status_class: '2xx' }),
    ).toBe(3);
    expect(added('tollgate_requests_total', { outcome: 'limited', status_class: '4xx' })).toBe(7);
    expect(added('tollgate_requests_total', { outcome: 'unauthenticated' })).toBe(1);
    expect(added('tollgate_requests_total', {})).toBe(11);
    expect(added('tollgate_request_duration_seconds_count', {})).toBe(11);
    expect(added('tollgate_limiter_decisions_total', { kind: 'allowed', mode: 'shared' })).toBe(3);
    expect(added('tollgate_limiter_decisions_total', { kind: 'limited' })).toBe(7);
  });

  it('count rejections that were repeated from the cache without a call to Redis', async () => {
    await fleet.admin.makePlan('one', 1, 'hour');
    const { secret } = await fleet.admin.makeKey('limited', 'one');
    await burst([url], { secret, requests: 2, inFlight: 1 });
    const before = await scrape();
    await burst([url], { secret, requests: 20, inFlight: 1 });
    const local = sum(await scrape(), 'tollgate_limiter_decisions_total', { mode: 'cached_rejection' });
    expect(local).toBeGreaterThan(
      sum(before, 'tollgate_limiter_decisions_total', { mode: 'cached_rejection' }),
    );
  });

  it('count a request that is rejected for its head', async () => {
    const before = sum(await scrape(), 'tollgate_requests_total', { outcome: 'invalid_request' });
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname).resume();
    socket.end('GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n');
    await once(socket, 'close');
    const labels = { outcome: 'invalid_request', method: 'other', status_class: '4xx' };
    expect(sum(await scrape(), 'tollgate_requests_total', labels)).toBe(before + 1);
  });

  it('count requests, upgraded connections and backend connections of this moment', async () => {
    const { secret } = await fleet.admin.makeKey('watched');
    await burst([url], { secret, requests: 4, inFlight: 1 });
    const before = await scrape();
    expect(sum(before, 'tollgate_requests_in_flight')).toBe(0);
    const waiting = fetch(`${url}/wait`, { headers: { authorization: `Bearer ${secret}` } });
    await until(async () => sum(await scrape(), 'tollgate_requests_in_flight') === 1);
    const socket = await upgrade(secret);
    const during = await scrape();
    expect(sum(during, 'tollgate_upgrades_open')).toBe(1);
    expect(sum(during, 'tollgate_backend_connections_opened_total')).toBeGreaterThan(
      sum(before, 'tollgate_backend_connections_opened_total'),
    );
    release();
    await (await waiting).text();
    socket.destroy();
    await until(async () => sum(await scrape(), 'tollgate_requests_in_flight') === 0);
    await until(async () => sum(await scrape(), 'tollgate_upgrades_open') === 0);
  });

  it('name keys only when configured to, and then only the busiest', async () => {
    const quiet = await fleet.admin.makeKey('quiet');
    const busy = await fleet.admin.makeKey('busy');
    await burst([url], { secret: quiet.secret, requests: 1, inFlight: 1 });
    await burst([url], { secret: busy.secret, requests: 40, inFlight: 2 });
    const text = await scrape();
    expect(sum(text, 'tollgate_key_requests_total', { key_id: busy.id, outcome: 'forwarded' })).toBe(40);
    expect(text.match(/key_[0-9A-Z]{26}/g)).toEqual([busy.id]);
  });

  it('take no component for down because the replica shuts down', async () => {
    const leaving = await startGateway({ ...fleet.environment, SHUTDOWN_DELAY_MS: '60000' });
    try {
      void leaving.stop();
      await until(async () => (await fetch(`${leaving.opsUrl}/readyz`)).status === 503);
      const text = await (await fetch(`${leaving.opsUrl}/metrics`)).text();
      expect(sum(text, 'tollgate_ready')).toBe(0);
      expect(text.match(/^tollgate_component_up.*$/gm)).toEqual([
        'tollgate_component_up{component="postgres"} 1',
        'tollgate_component_up{component="redis"} 1',
      ]);
    } finally {
      await leaving.kill();
    }
  });

  it('show the head of the audit log, once it was verified here', async () => {
    const { count, lastHash, lastAt } = (await fleet.admin.call('GET', '/tollgate/audit-log/verify')).body;
    expect(await scrape()).toContain(`tollgate_audit_log_head{hash="${lastHash}",at="${lastAt}"} ${count}\n`);
  });

  it('are each described in docs/metrics.md, and no others are', async () => {
    const documented = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    // This gateway has no identity provider.
    const rows = [
      ...documented.matchAll(/^\| `(tollgate_[a-z_]+)` \| (\w+)(?!.*only with `OIDC_ISSUER`)/gm),
    ].map(([, name, type]) => `${name} ${type}`);
    const exposed = [...(await scrape()).matchAll(/^# TYPE (tollgate_[a-z_]+) (\w+)/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    expect(rows.toSorted()).toEqual(exposed.toSorted());
  });

  it('have the labels that docs/metrics.md lists, and no others', async () => {
    await fleet.admin.makePlan('labelled', 9, 'hour');
    const { secret } = await fleet.admin.makeKey('labelled', 'labelled');
    await statusOf(url, secret);
    await statusOf(`${fleet.replicas[0]?.authorizeUrl}/authorize/envoy/`, secret);
    const documented = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    const rows = [
      ...documented.matchAll(/^\| `(tollgate_\w+)` \| \w+ \| ([^|]*)\|(?!.*only with `OIDC_ISSUER`)/gm),
    ].map(([, name = '', labels = '']) => [name, labels.match(/\w+/g)?.toSorted() ?? []] as const);
    expect(rows.length).toBeGreaterThan(40);
    const text = await scrape();
    const exposed = rows.map(([name]) => [name, labelsOf(text, name)]);
    expect(exposed).toEqual(rows.map(([name, labels]) => [name, [labels.join()]]));
  });

  it('have outcomes that are each described in docs/metrics.md, and no others are', () => {
    expect(namesUnder('## Outcomes')).toEqual([...OUTCOMES]);
  });

  it('have kinds and modes of decisions that are each described in docs/metrics.md', async () => {
    const samples = (await scrape()).match(/^tollgate_limiter_decisions_total\{.*/gm) ?? [];
    const values = (label: string) =>
      samples.map((sample) => new RegExp(`${label}="(\\w+)"`).exec(sample)?.[1]);
    const used = new Set([...values('kind'), ...values('mode')]);
    expect(new Set(namesUnder('## Decisions'))).toEqual(used);
  });
});

/** The names of the labels of a metric's samples, each combination once; those of a histogram's buckets without `le`. */
function labelsOf(text: string, name: string): readonly string[] {
  const samples = text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?(\\{.*\\})? [^ ]+$`, 'gm'));
  const names = [...samples].map(([, labels = '']) =>
    [...labels.matchAll(/(\w+)="/g)]
      .map(([, label]) => label)
      .filter((label) => label !== 'le')
      .toSorted(),
  );
  return [...new Set(names.map((each) => each.join()))];
}

/** What the tables of a section of docs/metrics.md list. */
function namesUnder(heading: string): readonly (string | undefined)[] {
  const documented = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const [section = ''] = documented.slice(documented.indexOf(heading) + heading.length).split('\n## ');
  return [...section.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, name]) => name);
}
