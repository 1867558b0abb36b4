/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, expect, it } from '@jest/globals';
import { cleanup, screen } from '@testing-library/react';
import { TokenDialog } from '../../../src/console/shell/token-dialog.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { renderSignedIn } from './support/stage.tsx';

afterEach(cleanup);

it('the console shows what the token may do that is signed in', async () => {
  renderSignedIn(['keys:read', 'usage:read'], <TokenDialog onClose={() => undefined} />);
  await screen.findByRole('dialog', { name: 'tester' });
  expect(screen.getAllByRole('listitem').map((item) => item.textContent)).toEqual([
    'keys:read',
    'usage:read',
  ]);
  expect(await axeFaults()).toEqual([]);
});
