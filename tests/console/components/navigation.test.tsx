/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, expect, it } from '@jest/globals';
import { cleanup, screen, within } from '@testing-library/react';
import { Navigation } from '../../../src/console/shell/navigation.tsx';
import { renderSignedIn } from './support/stage.tsx';

afterEach(cleanup);

it('the console navigates only to pages on which the token can see something', () => {
  const nothing = () => undefined;
  renderSignedIn(
    ['keys:read'],
    <Navigation folded={false} onFold={undefined} onFind={nothing} onHelp={nothing} onToken={nothing} />,
  );
  const pages = within(screen.getByRole('navigation', { name: 'Pages' })).getAllByRole('link');
  expect(pages.map(({ textContent }) => textContent)).toEqual(['Overview', 'Keys']);
});
