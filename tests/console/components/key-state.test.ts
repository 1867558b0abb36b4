/** @jest-environment node */
import { describe, expect, it } from '@jest/globals';
import { keyState, SOON_DAYS } from '../../../src/console/pages/keys/key-state.tsx';
import { EXPIRING_WITHIN_MS } from '../../../src/keys/key-list.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const DAY_MS = 86_400_000;
const WHEN = {
  'long ago': -DAY_MS,
  now: 0,
  'on the last day that counts as soon': SOON_DAYS * DAY_MS,
  'one millisecond later': SOON_DAYS * DAY_MS + 1,
};

it('the console calls a key soon expired when the gateway lists it as expiring', () => {
  expect(SOON_DAYS * DAY_MS).toBe(EXPIRING_WITHIN_MS);
});

describe('the state of a key', () => {
  it.each([
    ['long ago', true, 'expired'],
    ['long ago', false, 'expired'],
    ['now', true, 'expired'],
    ['on the last day that counts as soon', true, 'expires soon'],
    ['on the last day that counts as soon', false, 'disabled'],
    ['one millisecond later', true, 'active'],
  ] as const)('with an expiry %s and enabled: %s is %s', (when, enabled, state) => {
    const expiresAt = new Date(NOW + WHEN[when]).toISOString();
    expect(keyState({ enabled, expiresAt }, NOW).name).toBe(state);
  });

  it.each([
    [true, 'active'],
    [false, 'disabled'],
  ])('without an expiry and enabled: %s is %s', (enabled, state) => {
    expect(keyState({ enabled, expiresAt: null }, NOW).name).toBe(state);
  });
});
