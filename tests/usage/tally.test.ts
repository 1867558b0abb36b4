import { describe, expect, it } from '@jest/globals';
import { Tally } from '../../src/usage/tally.ts';
import type { CompletedRequest } from '../../src/usage/usage.ts';
import { OTHER } from '../../src/usage/usage-names.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { requestsIn } from './support/sample-usage.ts';

const HOUR_MS = 3_600_000;

function completed(fields: Partial<CompletedRequest> = {}): CompletedRequest {
  return { keyId: 'key', endpoint: '/a', customerId: 'c', successful: true, forwardedMs: 1, ...fields };
}

function tallyAt(hour: number, maxNames?: number) {
  const clock = new ManualClock(hour * HOUR_MS);
  const mask = (name: string) => name.replaceAll('tg_secret', '***');
  return { clock, tally: new Tally({ clock, mask, ...(maxNames !== undefined && { maxNames }) }) };
}

const taken = (tally: Tally) => tally.take(new Map());

describe('the tally', () => {
  it('counts each request once, in every list, with whole microseconds', () => {
    const { tally } = tallyAt(10);
    tally.record(completed({ forwardedMs: 1.2345 }));
    tally.record(completed({ forwardedMs: null, successful: false, customerId: 'd' }));
    tally.record(completed({ forwardedMs: 2, endpoint: '/b' }));
    const sums = taken(tally).get('key');
    expect(sums?.totals).toEqual({ requests: 3, successful: 2, forwarded: 2, forwardedUs: 3235 });
    expect(sums?.endpoints.get('/a')).toEqual({
      requests: 2,
      successful: 1,
      forwarded: 1,
      forwardedUs: 1235,
    });
    expect(sums?.customers.get('d')).toEqual({ requests: 1, successful: 0, forwarded: 0, forwardedUs: 0 });
    expect([...(sums?.hours ?? [])]).toEqual([[10, sums?.totals]]);
    expect(taken(tally).size).toBe(0);
  });

  it('keeps no credential that a client put into its path or its customer', () => {
    const { tally } = tallyAt(10);
    tally.record(completed({ endpoint: '/keys/tg_secret', customerId: 'tg_secret' }));
    tally.record(completed({ endpoint: '/keys/tg_secret', customerId: 'tg_secret' }));
    const sums = taken(tally).get('key');
    expect([...(sums?.endpoints.keys() ?? [])]).toEqual(['/keys/***']);
    expect(sums?.customers.get('***')?.requests).toBe(2);
  });

  it('puts a request into the hour in which it was recorded', () => {
    const { clock, tally } = tallyAt(10);
    tally.record(completed());
    clock.advance(HOUR_MS);
    tally.record(completed());
    tally.record(completed());
    expect(
      [...(taken(tally).get('key')?.hours ?? [])].map(([hour, { requests }]) => [hour, requests]),
    ).toEqual([
      [10, 1],
      [11, 2],
    ]);
  });

  it('keeps totals exact and itself small, whatever names clients invent', () => {
    const { clock, tally } = tallyAt(0, 3000);
    for (let index = 0; index < 10_000; index += 1) {
      clock.advance(HOUR_MS);
      const keyId = `key ${index % 4}`;
      tally.record(completed({ keyId, endpoint: `/${index}`, customerId: `${index}` }));
    }
    const keys = [...taken(tally).values()];
    let names = 0;
    for (const { totals, endpoints, customers, hours } of keys) {
      expect(totals.requests).toBe(2500);
      for (const list of [endpoints, customers, hours]) expect(requestsIn(list.values())).toBe(2500);
      expect(endpoints.size).toBeLessThanOrEqual(501);
      expect(customers.size).toBeLessThanOrEqual(1001);
      expect(hours.size).toBeLessThanOrEqual(48);
      names += endpoints.size + customers.size;
    }
    expect(names).toBeLessThanOrEqual(3000 + keys.length * 2);
    tally.record(completed({ endpoint: '/new' }));
    expect([...(taken(tally).get('key')?.endpoints.keys() ?? [])]).toEqual(['/new']);
  });

  it('is not led astray by names that mean something to the language', () => {
    const { tally } = tallyAt(0);
    for (const name of ['__proto__', 'constructor', OTHER, '\u0000', '', 'x'.repeat(10_000), '\ud800']) {
      tally.record(completed({ keyId: '__proto__', endpoint: name, customerId: name }));
    }
    const sums = taken(tally).get('__proto__');
    expect(sums?.totals.requests).toBe(7);
    expect([...(sums?.customers.keys() ?? [])]).toEqual([
      '__proto__',
      'constructor',
      OTHER,
      '\ufffd',
      'anonymous',
      'x'.repeat(128),
    ]);
  });

  it('does not let a duration that makes no sense into a sum', () => {
    const { tally } = tallyAt(0);
    for (const forwardedMs of [Number.NaN, -5, Number.POSITIVE_INFINITY, 1e300])
      tally.record(completed({ forwardedMs }));
    expect(taken(tally).get('key')?.totals).toEqual({
      requests: 4,
      successful: 4,
      forwarded: 4,
      forwardedUs: 0,
    });
  });

  it('keeps back keys that can not be written yet, and goes on adding to them', () => {
    const { tally } = tallyAt(0);
    for (const keyId of ['a', 'b', 'a']) tally.record(completed({ keyId }));
    expect([...tally.take(new Map([['a', 1]])).keys()]).toEqual(['b']);
    tally.record(completed({ keyId: 'a' }));
    expect(taken(tally).get('a')?.totals.requests).toBe(3);
  });
});
