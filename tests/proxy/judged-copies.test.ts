import { describe, expect, it } from '@jest/globals';
import { InvalidApiKey, KeyDisabled, StoreUnavailable, TollgateError } from '../../src/errors.ts';
import { KeyEntry } from '../../src/keys/cache/key-entry.ts';
import type { Exchange } from '../../src/proxy/exchange.ts';
import { type AuthenticateOptions, authenticate, CurrentKey } from '../../src/proxy/steps/authenticate.ts';
import { type LimitOptions, limit } from '../../src/proxy/steps/limit.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

const SNAPSHOT = {
  ...{ keyId: 'key', version: '1.1', enabled: true, expiresAtMs: null, restrictions: null },
  ...{ plan: null, secretVersion: 0, previousSecret: null },
};

function copyOf(changes: Partial<typeof SNAPSHOT> = {}): KeyEntry {
  const entry = KeyEntry.of({ ...SNAPSHOT, ...changes }, { secretVersion: 0, digest: 'a' }, 0);
  if (entry === undefined) throw new Error('the key has another secret');
  return entry;
}

interface Play {
  readonly cached?: KeyEntry;
  readonly isUnchecked?: boolean;
  /** What a look-up by the secret finds, and whether it was read for this request. */
  readonly stored?: { readonly entry: KeyEntry; readonly fresh: boolean };
  /** What reading the cached key again gives. */
  readonly reloaded?: KeyEntry | Error;
  /** Takes what has to be called once the copy is confirmed; missing: it is confirmed at once. */
  readonly onConfirm?: (confirm: () => void) => void;
  readonly startedAtMs?: number;
  /** What the limiter says of each copy that it is asked about. */
  readonly decisions?: readonly ('stale' | 'unavailable')[];
  /** Whether the step that counts finds the copy stale. */
  readonly isStaleInLimit?: boolean;
  readonly failure?: TollgateError;
}

/** A request with a key, and what became of it. */
function play(given: Play) {
  const { cached, isUnchecked = false, stored, reloaded, decisions = [], isStaleInLimit, failure } = given;
  const seen: string[] = [];
  const left = [...decisions];
  const exchange = {
    req: { headers: { authorization: 'Bearer secret' } },
    head: { path: '/' },
    startedAtMs: given.startedAtMs ?? 0,
    reloads: 0,
    next: () => goOn(),
    reject: ({ code }: TollgateError) => seen.push(code),
  } as unknown as Exchange;
  const options = {
    keys: {
      find: () => cached,
      isUnchecked: () => isUnchecked,
      confirm: (entry: KeyEntry, confirmed: (entry: KeyEntry, fresh: boolean) => void) => {
        given.onConfirm?.(() => confirmed(entry, true));
        if (given.onConfirm !== undefined) return;
        seen.push('confirmed');
        confirmed(entry, true);
      },
      load: (
        _secret: string,
        _client: string,
        loaded: (error: null, entry: KeyEntry | undefined, fresh: boolean) => void,
      ) => loaded(null, stored?.entry, stored?.fresh ?? false),
      reload: (_entry: KeyEntry, read: (error: Error | null, entry?: KeyEntry) => void) => {
        seen.push(`read again, with ${exchange.entry?.snapshot.keyId ?? 'no key'} meanwhile`);
        if (reloaded instanceof Error) read(reloaded);
        else read(null, reloaded);
      },
    },
    limiter: {
      decide: (_asked: unknown, decided: (decision: object) => void) =>
        decided({ kind: left.shift(), cause: new Error('Redis is away') }),
    },
    failedCredentials: { clientOf: () => '', errorFor: (_req: unknown, fault: Error) => failure ?? fault },
    crossOrigin: {
      followSetting: () => {},
      followAnyKey: (_exchange: unknown, followed: () => void) => {
        seen.push('origin looked up');
        followed();
      },
    },
    clock: new ManualClock(0),
  } as unknown as AuthenticateOptions;
  const goOn = () => {
    const { entry } = exchange;
    if (isStaleInLimit && exchange.reloads === 0 && entry)
      new CurrentKey(options).reload(exchange, entry, goOn);
    else seen.push(`goes on with ${entry?.snapshot.keyId}`);
  };
  authenticate(options)(exchange);
  return seen;
}

describe('authentication', () => {
  const disabled = copyOf({ enabled: false });
  const again = 'read again, with no key meanwhile';

  it('goes on with a copy that was not checked for long once it is confirmed', () => {
    expect(play({ cached: copyOf(), isUnchecked: true })).toEqual(['confirmed', 'goes on with key']);
  });

  it('rejects with 503 when a copy is not confirmed in time, also if it is later', async () => {
    let confirm = () => {};
    const onConfirm = (confirmed: () => void) => {
      confirm = confirmed;
    };
    const seen = play({ cached: copyOf(), isUnchecked: true, onConfirm, startedAtMs: -60_000 });
    expect(seen).toEqual([]);
    await until(() => seen.length > 0);
    confirm();
    expect(seen).toEqual(['store_unavailable']);
  });

  it('looks up the origin of a wrong key, but not for an address that guesses', () => {
    const { code } = new InvalidApiKey();
    expect(play({})).toEqual(['origin looked up', code]);
    expect(play({ failure: new TollgateError('too_many_requests', '') })).toEqual(['too_many_requests']);
  });

  it('believes a copy that was read for the request, but no older one, while Redis is away', () => {
    const { code } = new KeyDisabled();
    const unavailable = { decisions: ['unavailable'] } as const;
    expect(play({ stored: { entry: disabled, fresh: true }, ...unavailable })).toEqual([code]);
    expect(play({ stored: { entry: disabled, fresh: false }, ...unavailable })).toEqual([
      'store_unavailable',
    ]);
    const decisions = ['stale', 'unavailable'] as const;
    expect(play({ cached: disabled, reloaded: disabled, decisions })).toEqual([again, code]);
  });

  it('is of no key while a copy that was found stale is read again', () => {
    const reread = play({ cached: copyOf(), reloaded: copyOf(), isStaleInLimit: true });
    expect(reread).toEqual([again, 'goes on with key']);
  });

  it('looks up the secret when a stale copy is of a key that has it no more', () => {
    const stored = { entry: copyOf({ keyId: 'other' }), fresh: true };
    expect(play({ cached: disabled, decisions: ['stale'], stored })).toEqual([again, 'goes on with other']);
  });

  it('gives up a request whose copies are stale however often they are read', () => {
    const decisions = ['stale', 'stale', 'stale'] as const;
    const stale = play({ cached: disabled, reloaded: disabled, decisions });
    expect(stale).toEqual([again, again, 'store_unavailable']);
  });

  it('rejects with 503 when a stale copy can not be read again', () => {
    const reloaded = new StoreUnavailable('postgres', undefined);
    const unread = play({ cached: disabled, reloaded, decisions: ['stale'] });
    expect(unread).toEqual([again, 'store_unavailable']);
  });
});

describe('the limits', () => {
  it('count a request as one unit when a stale copy had costs and the copy in its place has no plan', () => {
    const limits = {
      hasPatterns: false,
      hasCustomerLimits: false,
      hasReportedCosts: true,
      limitsFor: () => [],
    };
    const exchange = {
      ...{ req: { headers: {} }, head: { path: '/' }, reloads: 0, startedAtMs: 0, units: 1 },
      next: () => {},
      entry: copyOf({ plan: { id: 'costly', limits } as never }),
      costIn: (found: object | null) => ({ units: found === null ? 1 : 50, isReported: found !== null }),
    } as unknown as Exchange;
    const kinds = ['stale', 'unlimited'];
    const options = {
      keys: { reload: (_: KeyEntry, read: (error: null, entry: KeyEntry) => void) => read(null, copyOf()) },
      limiter: { decide: (_: unknown, decided: (one: object) => void) => decided({ kind: kinds.shift() }) },
      crossOrigin: { followSetting: () => {} },
      ...{ clock: new ManualClock(0), backendTimeoutMs: 1000 },
    } as unknown as LimitOptions;
    limit(options)(exchange);
    expect(exchange).toMatchObject({ decision: { kind: 'unlimited' }, units: 1, reserved: undefined });
  });
});
