/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "Europe/Berlin"}
 */
import { expect, it } from '@jest/globals';
import { bucketStarts, bucketText } from '../../src/portal/portal/usage-buckets.ts';

it('no two hours of a day have the same name in the portal, also where clocks go back', () => {
  const starts = bucketStarts({ days: 1, interval: 'hour' }, Date.parse('2026-10-25T12:00:00Z'));
  const names = starts.map((start) => bucketText({ start }, 'hour'));
  expect(names).toHaveLength(24);
  expect(new Set(names).size).toBe(24);
});
