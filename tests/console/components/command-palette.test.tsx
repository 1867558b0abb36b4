/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { CommandPalette } from '../../../src/console/shell/command-palette.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { KEY, PLAN } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

const NOTHING = 'Nothing has this in its name.';

async function search(text: string): Promise<void> {
  gateway.render(['keys:read', 'plans:read'], <CommandPalette onClose={() => undefined} />);
  await userEvent.type(await screen.findByRole('combobox', { name: 'Go to' }), text);
}

it('the command palette says that it could not search, not that there is nothing', async () => {
  gateway.reply(503, { error: 'The database does not respond.', code: 'store_unavailable' });
  await search('shop');
  await screen.findByText('Keys or plans could not be searched.');
  expect(screen.queryByText(NOTHING)).toBeNull();
  expect(await axeFaults()).toEqual([]);
});

it('the command palette says that there is nothing once it has searched', async () => {
  gateway.respond(({ url }) => ({
    status: 200,
    body: url.startsWith('/rate-limit') ? { rateLimits: [] } : { apiKeys: [] },
  }));
  await search('shop');
  await screen.findByText(NOTHING);
});

it('Enter in the command palette opens no key or plan without the text, also while a search runs', async () => {
  window.history.replaceState(null, '', '/');
  const found = Promise.withResolvers<void>();
  const keys = ['Alpha', 'Gamma'].map((name) => ({ ...KEY, name, consumerApiKeyId: `key_${name}` }));
  gateway.respond(async ({ url }) => {
    const isSearch = new URLSearchParams(url.split('?')[1]).has('q');
    if (isSearch) await found.promise;
    return {
      status: 200,
      body: { rateLimits: isSearch ? [] : [PLAN], apiKeys: isSearch ? [keys[1]] : keys },
    };
  });
  gateway.render(['keys:read', 'plans:read'], <CommandPalette onClose={() => undefined} />);
  await screen.findByRole('option', { name: /^Alpha/ });
  await screen.findByRole('option', { name: /^gold/ });
  await userEvent.type(screen.getByRole('combobox', { name: 'Go to' }), 'Gamma');
  expect(screen.queryByRole('option', { name: /^(Alpha|gold)/ })).toBeNull();
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(window.location.pathname).toBe('/keys/key_Gamma'));
  found.resolve();
});
