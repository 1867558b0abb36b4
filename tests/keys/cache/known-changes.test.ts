import { describe, expect, it } from '@jest/globals';
import { KnownChanges } from '../../../src/keys/cache/known-changes.ts';
import type { ChangedRecord } from '../../../src/limiter/changes/record-changes.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const COPY = {
  ...{ keyId: 'key', version: '4.1', enabled: true, expiresAtMs: null, restrictions: null },
  ...{ plan: null, secretVersion: 0, previousSecret: null },
};
const CHANGE: ChangedRecord = { kind: 'key', id: 'key', version: 5 };

describe('known changes', () => {
  it('are forgotten after a minute, so that records of a backup are not held to be outdated', () => {
    const clock = new ManualClock(0);
    const changes = new KnownChanges(clock);
    changes.note([CHANGE]);
    clock.advance(60_000);
    changes.note([{ ...CHANGE, id: 'other' }]);
    expect(changes.isOutdated(COPY)).toBe(true);
    clock.advance(1);
    changes.note([{ ...CHANGE, id: 'third' }]);
    expect(changes.isOutdated(COPY)).toBe(false);
  });
});
