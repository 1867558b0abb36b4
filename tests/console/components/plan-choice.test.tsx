/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen } from '@testing-library/react';
import { KeysPage } from '../../../src/console/pages/keys-page.tsx';
import { UsagePage } from '../../../src/console/pages/usage-page.tsx';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

it.each([
  ['keys', KeysPage],
  ['usage', UsagePage],
])('the filter of %s shows its plan, also one that is not listed', async (_what, Page) => {
  window.history.replaceState(null, '', '/?rateLimitId=gone');
  gateway.reply(200, { apiKeys: [], jobs: [], rateLimits: [{ rateLimitId: 'gold' }], total: 0 });
  gateway.render(['keys:read', 'plans:read', 'usage:read'], <Page />);
  await screen.findByRole('option', { name: 'gold' });
  expect(screen.getByRole<HTMLSelectElement>('combobox', { name: 'Plan' }).value).toBe('gone');
});
