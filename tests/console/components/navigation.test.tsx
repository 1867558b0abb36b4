/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, expect, it } from '@jest/globals';
import { cleanup, screen, within } from '@testing-library/react';
import { Navigation } from '../../../src/console/shell/navigation.tsx';
import { renderSignedIn } from './support/stage.tsx';

afterEach(cleanup);

it('the console navigates only to pages on which the token can see something', () => {
  renderSignedIn(['keys:read'], <Navigation folded={false} onFold={undefined} onOpen={() => undefined} />);
  const pages = within(screen.getByRole('navigation', { name: 'Pages' })).getAllByRole('link');
  expect(pages.map(({ textContent }) => textContent)).toEqual(['Overview', 'Keys']);
});
