/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { type ReactNode, useState } from 'react';
import { Router } from 'wouter';
import { Dialog } from '../../../src/console/components/layout/dialog.tsx';
import { Shell } from '../../../src/console/shell/shell.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { renderSignedIn } from './support/stage.tsx';

const user = userEvent.setup({ delay: null });
/** When each key is typed. By the clock of a machine that stalls, the second of two may come too late. */
let typedAtMs: number;
beforeEach(() => {
  typedAtMs = 0;
  jest.spyOn(Event.prototype, 'timeStamp', 'get').mockImplementation(() => typedAtMs);
  localStorage.clear();
  window.history.replaceState(null, '', '/tollgate/console/nowhere');
});
afterEach(() => {
  cleanup();
  jest.restoreAllMocks();
});

function show(page: ReactNode = 'A page'): void {
  renderSignedIn(
    ['keys:read'],
    <Router base="/tollgate/console">
      <Shell>{page}</Shell>
    </Router>,
  );
}

const HELP = { name: 'Keyboard shortcuts' };
const singleKeys = () =>
  screen.findByRole<HTMLInputElement>('checkbox', { name: 'Shortcuts of single keys' });
const closeDialog = async () => {
  await user.keyboard('{Escape}');
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
};

it('the console has shortcuts of single keys, and of two that are typed within a second', async () => {
  show();
  await user.keyboard('?');
  await screen.findByRole('dialog', HELP);
  expect((await singleKeys()).checked).toBe(true);
  expect(await axeFaults()).toEqual([]);
  await closeDialog();
  await user.keyboard('g');
  typedAtMs += 1000;
  await user.keyboard('k');
  expect(window.location.pathname).toBe('/tollgate/console/nowhere');
  await user.keyboard('g');
  typedAtMs += 999;
  await user.keyboard('k');
  expect(window.location.pathname).toBe('/tollgate/console/keys');
});

it('all shortcuts but Ctrl K can be switched off for this browser, and on again', async () => {
  show();
  await user.click(screen.getByRole('button', HELP));
  await user.click(await singleKeys());
  await closeDialog();
  cleanup();
  show();
  await user.keyboard('?/gk');
  expect(screen.queryByRole('dialog')).toBeNull();
  expect(window.location.pathname).toBe('/tollgate/console/nowhere');
  await user.keyboard('{Control>}k{/Control}');
  await screen.findByRole('dialog', { name: 'Go to' });
  await closeDialog();
  await user.click(screen.getByRole('button', HELP));
  expect((await singleKeys()).checked).toBe(false);
  await user.click(await singleKeys());
  await closeDialog();
  await user.keyboard('?');
  await screen.findByRole('dialog', HELP);
});

it.each([
  ['Ctrl Shift K, which is the browser’s', { key: 'K', code: 'KeyK', shiftKey: true }, false],
  ['the key at the place of K that is another Latin letter', { key: 't', code: 'KeyK' }, false],
  ['the K of a layout that has it elsewhere', { key: 'k', code: 'KeyV' }, true],
  ['the key at the place of K in a Cyrillic layout', { key: 'л', code: 'KeyK' }, true],
])('the palette and %s', async (_key, pressed, isOpened) => {
  show();
  // True if the browser may do what it does with this key.
  expect(fireEvent.keyDown(document.body, { ...pressed, ctrlKey: true })).toBe(!isOpened);
  if (isOpened) await screen.findByRole('dialog', { name: 'Go to' });
});

function SecretMaker() {
  const [isShown, setShown] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setShown(true)}>
        Make a secret
      </button>
      {isShown && (
        <Dialog title="The secret" dismissible={false} onClose={() => setShown(false)}>
          tga_shown_once
        </Dialog>
      )}
    </>
  );
}

it('no shortcut leads away from a secret that is shown once', async () => {
  show(<SecretMaker />);
  // From now on the palette opens at once.
  await user.keyboard('{Control>}k{/Control}');
  await screen.findByRole('dialog', { name: 'Go to' });
  await closeDialog();
  await user.click(screen.getByRole('button', { name: 'Make a secret' }));
  await user.keyboard('{Control>}k{/Control}');
  expect(screen.queryByRole('dialog', { name: 'Go to', hidden: true })).toBeNull();
  fireEvent.keyDown(document.body, { key: 'g' });
  fireEvent.keyDown(document.body, { key: 'k' });
  expect(window.location.pathname).toBe('/tollgate/console/nowhere');
  screen.getByText('tga_shown_once');
});
