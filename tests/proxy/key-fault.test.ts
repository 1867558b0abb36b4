import { describe, expect, it } from '@jest/globals';
import { KeyEntry } from '../../src/keys/cache/key-entry.ts';
import { keyFault } from '../../src/proxy/steps/authenticate.ts';
import { ManualClock } from '../support/manual-clock.ts';

const AT_MS = 1_000_000;

function entryOf(changes: { readonly expiresAtMs?: number; readonly validUntilMs?: number }): KeyEntry {
  const { expiresAtMs = null, validUntilMs = AT_MS } = changes;
  const snapshot = {
    ...{ keyId: 'key_a', version: '1.1', enabled: true, expiresAtMs, plan: null, restrictions: null },
    ...{ secretVersion: 1, previousSecret: { version: 0, validUntilMs } },
  };
  const secretVersion = changes.validUntilMs === undefined ? 1 : 0;
  const entry = KeyEntry.of(snapshot, { secretVersion, digest: 'digest' }, 0);
  if (entry === undefined) throw new Error('the key has other secrets');
  return entry;
}

describe('an instant that ends', () => {
  it.each([
    ['a key', entryOf({ expiresAtMs: AT_MS }), 'key_expired'],
    ['the grace of a secret', entryOf({ validUntilMs: AT_MS }), 'invalid_api_key'],
  ])('%s is the first at which it is rejected', (_what, entry, code) => {
    const clock = new ManualClock(AT_MS - 1);
    expect(keyFault(entry, clock)).toBeUndefined();
    clock.advance(1);
    expect(keyFault(entry, clock)).toMatchObject({ code });
  });
});
