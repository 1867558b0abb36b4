/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { cleanup, render, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { Router } from 'wouter';
import { PlanPage } from '../../../src/console/pages/plan-page.tsx';
import { SignedIn } from './support/stage.tsx';
import { respondTo } from './support/stubbed-fetch.ts';

const PLAN = {
  ...{ description: '', limit: 100, period: 'day', additionalLimits: [], costs: [], version: 1 },
  ...{ managedBy: null, createdAt: '2026-01-01T00:00:00Z', updatedAt: '2026-01-01T00:00:00Z' },
};

let stub: ReturnType<typeof respondTo>;
beforeEach(() => {
  stub = respondTo(({ url }) => {
    const { pathname } = new URL(url);
    if (pathname !== '/rate-limit') return { status: 200, body: { ...PLAN, rateLimitId: 'all' } };
    const rateLimits = ['all', 'other'].map((rateLimitId) => ({ ...PLAN, rateLimitId, boundKeys: 1 }));
    return { status: 200, body: { rateLimits, nextCursor: null } };
  });
});
afterEach(() => {
  cleanup();
  stub.restore();
});

it('a plan can be deleted from its page whatever its name is', async () => {
  render(
    <SignedIn url={window.location.origin} scopes={['plans:read', 'plans:write', 'keys:write']}>
      <Router>
        <PlanPage params={{ rateLimitId: 'all' }} />
      </Router>
    </SignedIn>,
  );
  await userEvent.click(await screen.findByRole('button', { name: 'Delete…' }));
  await screen.findByRole('button', { name: 'Move 1 key and delete' });
  expect(screen.getByRole('option', { name: 'other' })).toBeTruthy();
});
