import { describe, expect, it } from '@jest/globals';
import { InvalidApiKey, TollgateError } from '../../src/errors.ts';
import { KeyEntry } from '../../src/keys/cache/key-entry.ts';
import type { Exchange } from '../../src/proxy/exchange.ts';
import { type AuthenticateOptions, authenticate } from '../../src/proxy/steps/authenticate.ts';
import { ManualClock } from '../support/manual-clock.ts';

const SNAPSHOT = {
  ...{ keyId: 'key', version: '1.1', enabled: true, expiresAtMs: null, restrictions: null },
  ...{ plan: null, secretVersion: 0, previousSecret: null },
};

function copyOf(): KeyEntry {
  const entry = KeyEntry.of(SNAPSHOT, { secretVersion: 0, digest: 'a' }, 0);
  if (entry === undefined) throw new Error('the key has another secret');
  return entry;
}

/** A request whose key is cached as `cached`, and what became of it. */
function play({ cached, failure }: { readonly cached?: KeyEntry; readonly failure?: TollgateError }) {
  const seen: string[] = [];
  const exchange = {
    req: { headers: { authorization: 'Bearer secret' } },
    head: { path: '/' },
    startedAtMs: 0,
    reloads: 0,
    next: () => seen.push(`goes on with ${exchange.entry?.snapshot.keyId}`),
    reject: ({ code }: TollgateError) => seen.push(code),
  } as unknown as Exchange;
  const options = {
    keys: {
      find: () => cached,
      isUnchecked: () => true,
      confirm: (entry: KeyEntry, confirmed: (entry: KeyEntry, fresh: boolean) => void) => {
        seen.push('confirmed');
        confirmed(entry, true);
      },
      load: (_secret: string, _client: string, loaded: (error: null) => void) => loaded(null),
    },
    failedCredentials: { clientOf: () => '', errorFor: (_req: unknown, fault: Error) => failure ?? fault },
    crossOrigin: {
      followAnyKey: (_exchange: unknown, followed: () => void) => {
        seen.push('origin looked up');
        followed();
      },
    },
    clock: new ManualClock(0),
  } as unknown as AuthenticateOptions;
  authenticate(options)(exchange);
  return seen;
}

describe('authentication', () => {
  it('goes on with a copy that was not checked for long once it is confirmed', () => {
    expect(play({ cached: copyOf() })).toEqual(['confirmed', 'goes on with key']);
  });

  it('looks up the origin of a wrong key, but not for an address that guesses', () => {
    const { code } = new InvalidApiKey();
    expect(play({})).toEqual(['origin looked up', code]);
    expect(play({ failure: new TollgateError('too_many_requests', '') })).toEqual(['too_many_requests']);
  });
});
