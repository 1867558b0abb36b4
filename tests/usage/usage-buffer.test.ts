import { describe, expect, it } from '@jest/globals';
import { OTHER } from '../../src/usage/cap-names.ts';
import { shardOf } from '../../src/usage/shards.ts';
import { UsageBuffer } from '../../src/usage/usage-buffer.ts';
import { noCounts, totalsOf, type UsageSlice } from '../../src/usage/usage-slice.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { addedUp, completed, requestsIn, requestsOf } from './support/sample-usage.ts';

const HOUR_MS = 3_600_000;

function bufferAt(hour: number) {
  const clock = new ManualClock(hour * HOUR_MS);
  const mask = (name: string) => name.replaceAll('tg_secret', '***');
  return { clock, buffer: new UsageBuffer({ clock, mask }) };
}

const taken = (buffer: UsageBuffer) => addedUp([...buffer.take(new Map()).values()].flat());

function only(slices: readonly UsageSlice[]): UsageSlice {
  const [slice] = slices;
  if (slice === undefined || slices.length > 1) throw new Error(`${slices.length} slices`);
  return slice;
}

describe('the buffer', () => {
  it('counts each request once, in every list, with whole microseconds', () => {
    const { buffer } = bufferAt(10);
    buffer.record(completed({ responseTimeMs: 1.2345, bytesIn: 5, bytesOut: 70 }));
    buffer.record(completed({ responseTimeMs: null, successful: false, customerId: 'd' }));
    buffer.record(completed({ responseTimeMs: 2, endpoint: '/b' }));
    const slice = only(taken(buffer));
    const totals = { ...noCounts(), requests: 3, successful: 2, forwarded: 2, forwardedUs: 3235 };
    expect(totalsOf(slice)).toEqual({ ...totals, bytesIn: 5, bytesOut: 70 });
    expect(slice.endpoints.get('/a')).toMatchObject({ requests: 2, successful: 1, forwardedUs: 1235 });
    expect(slice.customers.get('d')).toEqual({ ...noCounts(), requests: 1 });
    expect([...slice.hours.keys()]).toEqual([10]);
    expect([slice.keyId, slice.day, slice.planId, slice.lastUsedAtS]).toEqual(['key', 0, 'gold', 36_000]);
    expect(taken(buffer)).toEqual([]);
  });

  it('tells how a request ended', () => {
    const { buffer } = bufferAt(10);
    const endings = [
      { status: 200 },
      { status: 304 },
      { status: 404, successful: false },
      { status: 429, successful: false, rateLimited: true, shadowLimited: 2 },
      { status: 502, successful: false },
      { status: 0, successful: false },
      { status: 200, successful: false },
    ];
    for (const ending of endings) buffer.record(completed(ending));
    expect(totalsOf(only(taken(buffer)))).toMatchObject({
      requests: 7,
      successful: 2,
      rateLimited: 1,
      clientErrors: 2,
      serverErrors: 1,
      shadowLimited: 2,
    });
  });

  it('keeps days and plans apart', () => {
    const { clock, buffer } = bufferAt(23);
    buffer.record(completed());
    buffer.record(completed({ planId: '' }));
    clock.advance(HOUR_MS);
    buffer.record(completed());
    buffer.record(completed());
    const slices = taken(buffer);
    expect(slices.map((slice) => [slice.day, slice.planId, totalsOf(slice).requests])).toEqual([
      [0, 'gold', 1],
      [0, '', 1],
      [1, 'gold', 2],
    ]);
  });

  it('keeps no credential that a client put into its path or its customer', () => {
    const { buffer } = bufferAt(10);
    buffer.record(completed({ endpoint: '/keys/tg_secret', customerId: 'tg_secret' }));
    buffer.record(completed({ endpoint: '/keys/tg_secret', customerId: 'tg_secret' }));
    const slice = only(taken(buffer));
    expect([...slice.endpoints.keys()]).toEqual(['/keys/***']);
    expect(slice.customers.get('***')?.requests).toBe(2);
  });

  it('puts a request into the hour in which it was recorded, and knows the customers of the first hours apart', () => {
    const { clock, buffer } = bufferAt(10);
    for (let hour = 10; hour < 16; hour += 1) {
      buffer.record(completed({ customerId: `of ${hour}` }));
      clock.advance(HOUR_MS);
    }
    expect(taken(buffer).map(({ hours, customers }) => [[...hours.keys()], [...customers.keys()]])).toEqual([
      [[10], ['of 10']],
      [[11], ['of 11']],
      [[12], ['of 12']],
      [
        [13, 14, 15],
        ['of 13', 'of 14', 'of 15'],
      ],
    ]);
  });

  it('keeps totals exact and itself small, whatever names clients invent', () => {
    const { clock, buffer } = bufferAt(0);
    // Enough for the bounds of one slice and of all keys together.
    for (let index = 0; index < 30_000; index += 1) {
      if (index % 40 === 0) clock.advance(HOUR_MS);
      const keyId = `key ${index % 40}`;
      buffer.record(completed({ keyId, endpoint: `/${index}`, customerId: `${index}` }));
    }
    const slices = taken(buffer);
    expect(requestsOf(slices)).toBe(30_000);
    expect(slices.length).toBeLessThanOrEqual(320);
    let names = 0;
    for (const slice of slices) {
      const requests = requestsOf([slice]);
      for (const list of [slice.endpoints, slice.customers]) expect(requestsIn(list.values())).toBe(requests);
      expect(slice.endpoints.size).toBeLessThanOrEqual(501);
      expect(slice.customers.size).toBeLessThanOrEqual(1001);
      expect(slice.hours.size).toBeLessThanOrEqual(24);
      names += slice.endpoints.size + slice.customers.size;
    }
    expect(names).toBeGreaterThanOrEqual(50_000);
    expect(names).toBeLessThanOrEqual(50_000 + slices.length * 2);
    buffer.record(completed({ endpoint: '/new' }));
    expect([...only(taken(buffer)).endpoints.keys()]).toEqual(['/new']);
  });

  it('is not led astray by names that mean something to the language', () => {
    const { buffer } = bufferAt(0);
    for (const name of ['__proto__', 'constructor', OTHER, '\u0000', '', 'x'.repeat(10_000), '\ud800']) {
      buffer.record(completed({ keyId: '__proto__', endpoint: name, customerId: name }));
    }
    const slice = only(taken(buffer));
    expect(requestsOf([slice])).toBe(7);
    expect([...slice.customers.keys()]).toEqual([
      '__proto__',
      'constructor',
      OTHER,
      '\ufffd',
      'anonymous',
      'x'.repeat(128),
    ]);
  });

  it('counts the same whether requests of a key are all alike or not', () => {
    const requests = [
      {},
      {},
      { customerId: 'd' },
      {},
      { planId: '' },
      { endpoint: '/b\u0000' },
      { endpoint: '/b\u0000' },
    ];
    for (let count = 1; count <= requests.length; count += 1) {
      const [{ buffer: one }, { buffer: other }] = [bufferAt(9), bufferAt(9)];
      const first = requests.slice(0, count).map((fields) => completed({ ...fields, bytesOut: 7 }));
      for (const request of first) one.record(request);
      const each = first.map((request) => {
        other.record(request);
        return [...other.take(new Map()).values()].flat();
      });
      expect(taken(one)).toEqual(addedUp(each.flat()));
    }
  });

  it('counts the whole duration of a request that takes days', () => {
    const { buffer } = bufferAt(0);
    for (const hours of [3, 72]) buffer.record(completed({ responseTimeMs: hours * HOUR_MS }));
    expect(totalsOf(only(taken(buffer)))).toMatchObject({ forwarded: 2, forwardedUs: 270_000_000_000 });
  });

  it('does not let a duration that makes no sense into a sum', () => {
    const { buffer } = bufferAt(0);
    for (const responseTimeMs of [Number.NaN, -5, Number.POSITIVE_INFINITY, 1e300])
      buffer.record(completed({ responseTimeMs }));
    expect(totalsOf(only(taken(buffer)))).toMatchObject({ requests: 4, forwarded: 4, forwardedUs: 0 });
  });

  it('keeps back shards that can not be written yet, and goes on adding to them', () => {
    const { buffer } = bufferAt(0);
    for (const keyId of ['a', 'b', 'a']) buffer.record(completed({ keyId }));
    expect([...buffer.take(new Map([[shardOf('a'), 1]])).keys()]).toEqual([shardOf('b')]);
    buffer.record(completed({ keyId: 'a' }));
    expect(requestsOf(taken(buffer))).toBe(3);
  });
});
