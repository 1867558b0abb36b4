/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, describe, expect, it } from '@jest/globals';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { type AuditFilter, readAuditFilter } from '../../../src/console/pages/audit/audit-filter.ts';
import { AuditFilters } from '../../../src/console/pages/audit/audit-filters.tsx';
import { AuditPage } from '../../../src/console/pages/audit-page.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { renderSignedIn } from './support/stage.tsx';

afterEach(cleanup);

/** Enters a text in a field, and says what the page is asked to filter by. */
function enter(label: string, value: string): readonly Partial<AuditFilter>[] {
  const asked: Partial<AuditFilter>[] = [];
  const filter = readAuditFilter(new URLSearchParams());
  render(
    <AuditFilters
      filter={filter}
      isFiltered={false}
      clears={0}
      onChange={(fields) => asked.push(fields)}
      onClear={() => undefined}
    />,
  );
  const field = screen.getByLabelText(label);
  fireEvent.change(field, { target: { value } });
  fireEvent.keyDown(field, { key: 'Enter' });
  return asked;
}

describe('the filters of the audit log', () => {
  it.each([
    ['a token', 'adm_1'],
    ['a person whose provider has bars in subjects', 'auth0|5f7c88'],
    ['a person whose subject is an address', 'ada@example.com'],
    ['a person with a long subject', 'a'.repeat(255)],
  ])('take the id of %s as an actor', (_what, actorId) => {
    expect(enter('Actor', ` ${actorId} `)).toEqual([{ actorId }]);
  });

  it.each(['key_1', 'gold', 'team/eu:prod@shop'])('take %s as a target', (targetId) => {
    expect(enter('Target', ` ${targetId} `)).toEqual([{ targetId }]);
  });

  it.each([
    ['Actor', 'Ada Example'],
    ['Actor', 'a'.repeat(256)],
    ['Target', 'auth0|5f7c88'],
  ])('say in the field %s what can not be an id, and do not ask for it: %s', async (label, text) => {
    expect(enter(label, text)).toEqual([]);
    const field = screen.getByRole('textbox', { name: label, description: /^This is no id/ });
    expect(field.getAttribute('aria-invalid')).toBe('true');
    expect(screen.getByRole('alert').textContent).toMatch(/^This is no id/);
    expect(await axeFaults()).toEqual([]);
  });

  it('keep no text when they are cleared, also none that can not be an id', async () => {
    window.history.replaceState(null, '', '/?action=key.create&targetId=key_1');
    renderSignedIn(['audit:read'], <AuditPage />);
    const user = userEvent.setup();
    await user.type(screen.getByLabelText('Actor'), 'Ada Example');
    await user.click(screen.getByRole('button', { name: 'Clear' }));
    for (const label of ['Actor', 'Target'])
      expect(screen.getByLabelText<HTMLInputElement>(label).value).toBe('');
    expect(screen.queryByText(/^This is no id/)).toBeNull();
  });
});
