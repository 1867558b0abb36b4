import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { TollgateError } from '../../src/errors.ts';
import { FailedCredentials } from '../../src/http/credentials/failed-credentials.ts';
import { ManualClock } from '../support/manual-clock.ts';

const FAILURE = new TollgateError('invalid_api_key', 'The consumer API key is not valid.');

describe('failed credentials', () => {
  let clock: ManualClock;
  let failed: FailedCredentials;
  beforeEach(() => {
    clock = new ManualClock(0);
    failed = new FailedCredentials({ clock, trustedProxies: new BlockList() });
  });

  /** The codes that `times` failures in a row from an address get. */
  function responds(remoteAddress: string, times: number): readonly string[] {
    const req = requestFrom(remoteAddress);
    return Array.from({ length: times }, () => failed.errorFor(req, FAILURE).code);
  }
  const unauthenticated = (times: number) => Array(times).fill('invalid_api_key');
  const slowedDown = (times: number) => Array(times).fill('too_many_requests');

  it('are reported as such up to the burst, and then as too many', () => {
    expect(responds('192.0.2.1', 1002)).toEqual([...unauthenticated(1000), ...slowedDown(2)]);
  });

  it('come back with time, up to the burst', () => {
    responds('192.0.2.1', 1002);
    clock.advance(19);
    expect(responds('192.0.2.1', 1)).toEqual(slowedDown(1));
    clock.advance(1);
    expect(responds('192.0.2.1', 2)).toEqual([...unauthenticated(1), ...slowedDown(1)]);
    clock.advance(3_600_000);
    expect(responds('192.0.2.1', 1001)).toEqual([...unauthenticated(1000), ...slowedDown(1)]);
  });

  it('of one request count together or not at all, and Retry-After says when there is room for them', () => {
    responds('192.0.2.1', 700);
    const req = requestFrom('192.0.2.1');
    expect(failed.errorFor(req, FAILURE, 500)).toMatchObject({ code: 'too_many_requests', retryAfterS: 4 });
    clock.advance(3999);
    expect(failed.errorFor(req, FAILURE, 500).code).toBe('too_many_requests');
    clock.advance(1);
    expect(failed.errorFor(req, FAILURE, 500)).toBe(FAILURE);
    expect(responds('192.0.2.1', 1)).toEqual(slowedDown(1));
  });

  it('of one address do not count for another', () => {
    responds('192.0.2.1', 1002);
    expect(responds('192.0.2.2', 1)).toEqual(unauthenticated(1));
  });

  it('count together for one IPv6 network of 64 bits, however it is written', () => {
    expect(responds('2001:db8::1', 999)).toEqual(unauthenticated(999));
    expect(responds('2001:0DB8:0:0:ffff::2', 2)).toEqual([...unauthenticated(1), ...slowedDown(1)]);
    expect(responds('2001:db8:0:1::1', 1)).toEqual(unauthenticated(1));
    expect(responds('2001:db8::1:0:0:192.0.2.1', 1000)).toEqual([...unauthenticated(999), ...slowedDown(1)]);
  });

  it('of many networks of 64 bits use up the budget of the one of 48 bits around them', () => {
    const sites = Array.from({ length: 8 }, (_, index) => `2001:db8:0:${index + 1}::1`);
    for (const site of sites) expect(responds(site, 1000)).toEqual(unauthenticated(1000));
    expect(responds('2001:db8:0:ffff::1', 1)).toEqual(slowedDown(1));
    expect(responds('2001:db8:1::1', 1)).toEqual(unauthenticated(1));
    expect(failed.clientOf(requestFrom('2001:db8:0:fffe::1'))).toBe('2001:db8:0::/48');
    expect(failed.clientOf(requestFrom('2001:db8:1::1'))).toBe('2001:db8:1:0::/64');
  });

  it('are remembered for a bounded number of clients, the latest ones', () => {
    responds('192.0.2.1', 1002);
    responds('192.0.2.2', 1002);
    // With these there is one client too many.
    for (let other = 0; other < 9999; other += 1) responds(`10.0.${other >> 8}.${other & 255}`, 1);
    expect(responds('192.0.2.2', 1)).toEqual(slowedDown(1));
    expect(responds('192.0.2.1', 1)).toEqual(unauthenticated(1));
  });
});

function requestFrom(remoteAddress: string): IncomingMessage {
  return { socket: { remoteAddress }, headers: {} } as unknown as IncomingMessage;
}
