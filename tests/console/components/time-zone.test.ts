/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "Europe/Berlin"}
 */
import { expect, it } from '@jest/globals';
import { exactTime, localTimeZone } from '../../../src/console/format/exact-time.ts';

const { setTimeZone } = globalThis as unknown as { readonly setTimeZone: (timeZone: string) => void };

it('times are in the time zone of the browser, also after that has changed', () => {
  expect(exactTime(0)).toMatch(/\b0?1:00:00(\sAM)? \(Europe\/Berlin\)$/);
  setTimeZone('Asia/Tokyo');
  expect(exactTime(0)).toMatch(/\b0?9:00:00(\sAM)? \(Asia\/Tokyo\)$/);
  expect(localTimeZone()).toBe('Asia/Tokyo');
});
