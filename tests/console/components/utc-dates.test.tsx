/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "Pacific/Auckland"}
 */
import { afterEach, expect, it, jest } from '@jest/globals';
import { cleanup, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { UsageControls } from '../../../src/console/pages/usage/usage-controls.tsx';
import { readView } from '../../../src/console/pages/usage/usage-view.ts';
import { renderSignedIn } from './support/stage.tsx';

afterEach(() => {
  cleanup();
  jest.restoreAllMocks();
});

it.each([
  ['UTC', 'zone=utc', '2026-11-29'],
  ['the browser', '', '2026-11-30'],
])('a range of dates begins with the day that it is in the time zone of %s', async (_zone, search, today) => {
  jest.spyOn(Date, 'now').mockReturnValue(Date.parse('2026-11-29T19:00:00Z'));
  const changes: object[] = [];
  const view = readView(new URLSearchParams(search));
  renderSignedIn([], <UsageControls view={view} onChange={(fields) => changes.push(fields)} />);
  await userEvent.selectOptions(screen.getByLabelText('Range'), 'From … to …');
  expect(changes).toEqual([expect.objectContaining({ from: today, to: today })]);
});
