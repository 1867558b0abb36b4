/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, expect, it } from '@jest/globals';
import { cleanup, screen } from '@testing-library/react';
import { KeyName } from '../../../src/console/components/text/key-name.tsx';
import { PageLink } from '../../../src/console/components/text/page-link.tsx';
import { renderSignedIn } from './support/stage.tsx';

afterEach(cleanup);

it('only pages that the token may see are linked; others are named', () => {
  renderSignedIn(
    ['plans:read'],
    <>
      <PageLink scope="plans:read" href="/plans/gold">
        gold
      </PageLink>
      <KeyName id="key_1" name="Mobile app" />
    </>,
  );
  expect(screen.getAllByRole('link').map(({ textContent }) => textContent)).toEqual(['gold']);
  expect(screen.getByText('Mobile app')).toBeTruthy();
});
