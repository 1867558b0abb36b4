/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { screen } from '@testing-library/react';
import { type UserEvent, userEvent } from '@testing-library/user-event';
import { Router } from 'wouter';
import { PlanPage } from '../../../src/console/pages/plan-page.tsx';
import { PLAN } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();
let readingAgain: PromiseWithResolvers<void>;
let user: UserEvent;
beforeEach(() => {
  readingAgain = Promise.withResolvers<void>();
  let saved: object | undefined;
  gateway.respond(async ({ method, url, body }) => {
    const plan = { ...PLAN, rateLimitId: 'all', description: '' };
    if (method === 'PATCH') {
      const changed = { ...plan, ...saved, ...JSON.parse(body) };
      saved = changed;
      return { status: 200, body: changed, headers: { etag: '"2"' } };
    }
    if (url.startsWith('/rate-limit?')) {
      const rateLimits = ['all', 'other'].map((rateLimitId) => ({ ...PLAN, rateLimitId, boundKeys: 1 }));
      return { status: 200, body: { rateLimits, nextCursor: null } };
    }
    if (saved !== undefined) await readingAgain.promise;
    return { status: 200, body: saved ?? plan, headers: { etag: '"1"' } };
  });
  window.history.replaceState({}, '', '/plans/all');
  gateway.render(
    ['plans:read', 'plans:write', 'keys:write'],
    <Router>
      <PlanPage params={{ rateLimitId: 'all' }} />
    </Router>,
  );
  user = userEvent.setup();
});
afterEach(() => readingAgain.resolve());

it('a plan can be deleted from its page whatever its name is', async () => {
  await user.click(await screen.findByRole('button', { name: 'Delete…' }));
  await screen.findByRole('button', { name: 'Move 1 key and delete' });
  expect(screen.getByRole('option', { name: 'other' })).toBeTruthy();
});

it('a saved plan is shown, and can be saved again, before it has been read again', async () => {
  const save = async (text: string) => {
    await user.click(await screen.findByRole('link', { name: 'Edit plan' }));
    await user.type(await screen.findByLabelText('Description', { exact: false }), text);
    await user.click(screen.getByRole('button', { name: 'Review changes' }));
    await user.click(await screen.findByRole('button', { name: 'Save changes' }));
  };
  await save('For all');
  await screen.findByText('For all', { selector: 'bdi' });
  await save(' of them');
  await screen.findByText('For all of them', { selector: 'bdi' });
  const changes = gateway.requests.filter(({ method }) => method === 'PATCH');
  expect(changes.map(({ headers, body }) => [headers['if-match'], JSON.parse(body)])).toEqual([
    ['"1"', { description: 'For all' }],
    ['"2"', { description: 'For all of them' }],
  ]);
});
