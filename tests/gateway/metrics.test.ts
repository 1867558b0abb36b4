import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { burst, statusOf } from '../support/burst.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';

let fleet: Fleet;
let url: string;

beforeAll(async () => {
  fleet = await startFleet(1, {}, (req, res) =>
    req.url === '/missing' ? res.writeHead(404).end() : res.end('ok'),
  );
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

describe('the metrics', () => {
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
      added('tollgate_requests_total', { outcome: 'admitted', method: 'GET', status_class: '2xx' }),
    ).toBe(3);
    expect(added('tollgate_requests_total', { outcome: 'limited', status_class: '4xx' })).toBe(7);
    expect(added('tollgate_requests_total', { outcome: 'unauthenticated' })).toBe(1);
    expect(added('tollgate_requests_total', {})).toBe(11);
    expect(added('tollgate_request_duration_seconds_count', {})).toBe(11);
    expect(added('tollgate_limiter_decisions_total', { kind: 'admitted', mode: 'shared' })).toBe(3);
    expect(added('tollgate_limiter_decisions_total', { kind: 'denied' })).toBe(7);
  });

  it('answer a denial that was just given without asking Redis again', async () => {
    await fleet.admin.makePlan('one', 1, 'hour');
    const { secret } = await fleet.admin.makeKey('denied', 'one');
    await burst([url], { secret, requests: 2, inFlight: 1 });
    const before = await scrape();
    await burst([url], { secret, requests: 20, inFlight: 1 });
    const local = sum(await scrape(), 'tollgate_limiter_decisions_total', { mode: 'local_denial' });
    expect(local).toBeGreaterThan(sum(before, 'tollgate_limiter_decisions_total', { mode: 'local_denial' }));
  });

  it('are each described in docs/metrics.md, and no others are', async () => {
    const documented = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    const rows = [...documented.matchAll(/^\| `(tollgate_[a-z_]+)` \| (\w+)/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    const exposed = [...(await scrape()).matchAll(/^# TYPE (tollgate_[a-z_]+) (\w+)/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    expect(rows.toSorted()).toEqual(exposed.toSorted());
  });
});
