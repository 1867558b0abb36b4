import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { TollgateError } from '../../src/errors.ts';
import { FailedCredentials } from '../../src/http/failed-credentials.ts';
import { ManualClock } from '../support/manual-clock.ts';

const FAILURE = new TollgateError('invalid_api_key', 'The consumer API key is not valid.');

describe('failed credentials', () => {
  let clock: ManualClock;
  let failed: FailedCredentials;
  beforeEach(() => {
    clock = new ManualClock(0);
    failed = new FailedCredentials({
      clock,
      trustedProxies: new BlockList(),
      burst: 3,
      perSecond: 2,
      maxAddresses: 2,
    });
  });

  /** The codes that `times` failures in a row from an address are answered with. */
  function answers(remoteAddress: string, times: number): readonly string[] {
    const req = { socket: { remoteAddress }, headers: {} } as unknown as IncomingMessage;
    return Array.from({ length: times }, () => failed.answerTo(req, FAILURE).code);
  }
  const told = (times: number) => Array(times).fill('invalid_api_key');
  const slowedDown = (times: number) => Array(times).fill('too_many_requests');

  it('are told as such up to the burst, and then as too many', () => {
    expect(answers('192.0.2.1', 5)).toEqual([...told(3), ...slowedDown(2)]);
  });

  it('come back with time, up to the burst', () => {
    answers('192.0.2.1', 5);
    clock.advance(499);
    expect(answers('192.0.2.1', 1)).toEqual(slowedDown(1));
    clock.advance(1);
    expect(answers('192.0.2.1', 2)).toEqual([...told(1), ...slowedDown(1)]);
    clock.advance(3_600_000);
    expect(answers('192.0.2.1', 4)).toEqual([...told(3), ...slowedDown(1)]);
  });

  it('of one address do not count for another', () => {
    answers('192.0.2.1', 5);
    expect(answers('192.0.2.2', 1)).toEqual(told(1));
  });

  it('count together for the addresses of one IPv6 network of 64 bits, however they are written', () => {
    expect(answers('2001:db8::1', 2)).toEqual(told(2));
    expect(answers('2001:0DB8:0:0:ffff::2', 2)).toEqual([...told(1), ...slowedDown(1)]);
    expect(answers('2001:db8:0:1::1', 1)).toEqual(told(1));
  });

  it('are remembered for a bounded number of addresses, the latest ones', () => {
    answers('192.0.2.1', 5);
    answers('192.0.2.2', 5);
    answers('192.0.2.3', 1);
    expect(answers('192.0.2.2', 1)).toEqual(slowedDown(1));
    expect(answers('192.0.2.1', 1)).toEqual(told(1));
  });
});
