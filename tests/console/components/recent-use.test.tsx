/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { describe, expect, it } from '@jest/globals';
import { screen } from '@testing-library/react';
import { RecentUse } from '../../../src/console/pages/keys/change/recent-use.tsx';
import { UnusedKeys } from '../../../src/console/pages/overview/keys-to-look-after.tsx';
import { KEY } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

describe('the use of a key', () => {
  it('is said without a count for a token that may not read usage', async () => {
    gateway.render(['keys:read'], <RecentUse apiKey={KEY} />);
    expect(document.body.textContent).toBe('It was never used.');
    expect(gateway.requests).toEqual([]);
  });

  it('is said without a count where the usage can not be read', async () => {
    gateway.reply(503, { error: 'Postgres does not respond.', code: 'store_unavailable' });
    gateway.render(['usage:read'], <RecentUse apiKey={{ ...KEY, lastUsedAt: '2026-01-02T03:04:05Z' }} />);
    await screen.findByText(/^It was last used/);
  });

  it('is none of a key that was never used', async () => {
    gateway.reply(200, { apiKeys: [KEY], total: 1 });
    gateway.render(['keys:read'], <UnusedKeys />);
    await screen.findByText('never used');
  });
});
