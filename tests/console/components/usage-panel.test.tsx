/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, expect, it } from '@jest/globals';
import { cleanup, render, screen } from '@testing-library/react';
import { UsagePanel } from '../../../src/console/pages/system/stores.tsx';

afterEach(cleanup);

it.each([
  ['On time', 3, false],
  ['Late', 200, true],
  ['Not known', null, false],
] as const)('usage is shown as %s after %p seconds', (state, pendingSeconds, isLate) => {
  const oldestPendingAt = pendingSeconds === null ? null : new Date(0).toISOString();
  const usage = { flushIntervalSeconds: 60, pendingSeconds, oldestPendingAt, lastFlushAt: null };
  render(<UsagePanel usage={usage} isLate={isLate} />);
  expect(screen.getByText(state)).toBeTruthy();
});
