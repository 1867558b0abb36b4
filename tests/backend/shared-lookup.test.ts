import { ADDRCONFIG, type LookupAddress } from 'node:dns';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { sharedLookup } from '../../src/backend/shared-lookup.ts';
import { ManualClock } from '../support/manual-clock.ts';

const MINUTE_MS = 60_000;
const FIRST: readonly LookupAddress[] = [
  { address: '192.0.2.1', family: 4 },
  { address: '2001:db8::1', family: 6 },
];
const SECOND: readonly LookupAddress[] = [{ address: '192.0.2.2', family: 4 }];

type Answer = (error: Error | null, addresses: readonly LookupAddress[]) => void;

describe('the look-up of the name of a backend', () => {
  let clock: ManualClock;
  /** Those that the system has not answered. */
  let asked: Answer[];
  let askedWith: object | undefined;
  let lookUp: ReturnType<typeof sharedLookup>;
  beforeEach(() => {
    clock = new ManualClock(0);
    asked = [];
    const system = (_name: string, options: object, answer: Answer) => {
      askedWith = options;
      asked.push(answer);
    };
    lookUp = sharedLookup(system as unknown as Parameters<typeof sharedLookup>[0], clock);
  });

  /** What a connection gets. */
  function connect(all = true): Promise<unknown> {
    return new Promise((resolve) =>
      lookUp('backend.example', { hints: ADDRCONFIG, all }, (error, address, family) =>
        resolve(error ?? (all ? address : [address, family])),
      ),
    );
  }

  const answer = (addresses: readonly LookupAddress[]) => asked.shift()?.(null, addresses);
  const fail = () => asked.shift()?.(new Error('getaddrinfo EAI_AGAIN'), []);

  it('is one for all connections that begin meanwhile', async () => {
    const connections = [connect(), connect(), connect(false)];
    expect(asked).toHaveLength(1);
    expect(askedWith).toEqual({ hints: ADDRCONFIG, all: true });
    answer(FIRST);
    expect(await Promise.all(connections)).toEqual([FIRST, FIRST, ['192.0.2.1', 4]]);
  });

  it('holds for a second', async () => {
    const first = connect();
    answer(FIRST);
    await first;
    clock.advance(999);
    expect(await connect()).toEqual(FIRST);
    expect(asked).toHaveLength(0);
    clock.advance(1);
    const next = connect();
    answer(SECOND);
    expect(await next).toEqual(SECOND);
  });

  it('keeps the last addresses for five minutes while the system finds none', async () => {
    const first = connect();
    answer(FIRST);
    await first;
    clock.advance(5 * MINUTE_MS - 1);
    const failed = connect();
    fail();
    expect(await failed).toEqual(FIRST);
    clock.advance(1);
    const late = connect();
    fail();
    expect(await late).toBeInstanceOf(Error);
  });

  it('uses the last addresses while the system takes long, but for the connection that asks it', async () => {
    const first = connect();
    answer(FIRST);
    await first;
    clock.advance(2000);
    const asking = connect();
    expect([await connect(), await connect()]).toEqual([FIRST, FIRST]);
    expect(asked).toHaveLength(1);
    answer(SECOND);
    expect(await asking).toEqual(SECOND);
    expect(await connect()).toEqual(SECOND);
  });

  it('fails for all that wait where nothing is known, and is tried again by the next', async () => {
    const connections = [connect(), connect()];
    fail();
    for (const each of await Promise.all(connections)) expect(each).toBeInstanceOf(Error);
    const next = connect();
    answer(FIRST);
    expect(await next).toEqual(FIRST);
  });

  it('gives connections the addresses of one family in turn', async () => {
    const three = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => ({ address, family: 4 }));
    const connections = [connect(false), connect(false), connect(false)];
    answer(three);
    const firsts = (await Promise.all(connections)).map((found) => (found as readonly unknown[])[0]);
    expect(firsts.toSorted()).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
  });
});
