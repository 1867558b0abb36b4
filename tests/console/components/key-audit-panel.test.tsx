/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, within } from '@testing-library/react';
import { KeyAuditPanel } from '../../../src/console/pages/keys/detail/key-audit-panel.tsx';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

it('the audit log of a key has the words and the columns of the whole log', async () => {
  const actor = { type: 'root', adminTokenId: null, name: 'root' };
  const changes = { enabled: { from: true, to: false } };
  const entry = { auditId: 'aud_1', at: '2026-01-02T03:04:05Z', action: 'key.update', reason: 'leaked' };
  gateway.reply(200, { entries: [{ ...entry, actor, changes }] });
  gateway.render(['audit:read'], <KeyAuditPanel keyId="key_1" />);
  const table = within(await screen.findByRole('table', { name: 'Audit log' }));
  const headers = table.getAllByRole('columnheader').map(({ textContent }) => textContent);
  expect(headers).toEqual(['Time', 'Action', 'Actor', 'Changes', 'Reason']);
  const [, action, who, ...rest] = table.getAllByRole('cell').map(({ textContent }) => textContent);
  expect(action).toMatch(/^changed a key/);
  expect([who, ...rest]).toEqual(['Root token', 'enabled', 'leaked']);
});
