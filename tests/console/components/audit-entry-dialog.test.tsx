/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, expect, it } from '@jest/globals';
import { cleanup, screen, within } from '@testing-library/react';
import { AuditEntryDialog } from '../../../src/console/pages/audit/audit-entry-dialog.tsx';
import type { AuditEntry } from '../../../src/console/pages/audit/audit-words.ts';
import { axeFaults } from './support/axe-faults.ts';
import { renderSignedIn } from './support/stage.tsx';

const ENTRY: Omit<AuditEntry, 'actor'> = {
  ...{ auditId: 'aud_1', at: '2026-01-02T03:04:05Z', action: 'key.delete', changes: {}, reason: null },
  ...{ requestId: 'req_1', address: '192.0.2.1', outcome: 'success', jobId: null },
  target: { type: 'key', id: 'key_1', name: 'a key' },
};

afterEach(cleanup);

/** The facts of an entry about who made the change. */
function factsOf(actor: AuditEntry['actor']): Readonly<Record<string, string>> {
  renderSignedIn(['audit:read'], <AuditEntryDialog entry={{ ...ENTRY, actor }} onClose={() => {}} />);
  const dialog = within(screen.getByRole('dialog'));
  const textsOf = (role: string) => dialog.getAllByRole(role).map(({ textContent }) => textContent ?? '');
  const values = textsOf('definition');
  const facts = textsOf('term').map((name, index) => [name, values[index] ?? ''] as const);
  return Object.fromEntries(facts.filter(([name]) => ['Actor', 'Email', 'Subject', 'Token'].includes(name)));
}

it('an audit entry names a person by email and subject', async () => {
  const person = { type: 'person', adminTokenId: null, name: 'Alex Smith', subject: 'idp|7' } as const;
  expect(factsOf({ ...person, email: 'alex@example.com' })).toEqual({
    ...{ Actor: 'person', Email: 'alex@example.com', Subject: 'idp|7' },
  });
  expect(await axeFaults()).toEqual([]);
  cleanup();
  expect(factsOf(person)).toEqual({ Actor: 'person', Subject: 'idp|7' });
});

it('an audit entry says what an actor is, whatever its name', () => {
  expect(factsOf({ type: 'root', adminTokenId: null, name: 'root' })).toEqual({ Actor: 'root token' });
  cleanup();
  expect(factsOf({ type: 'token', adminTokenId: 'adm_1', name: 'Root token' })).toEqual({
    ...{ Actor: 'admin token', Token: 'adm_1' },
  });
});

it('an audit entry of a change of many keys leads to that change, and so does the one that began it', () => {
  const actor = { type: 'root', adminTokenId: null, name: 'root' } as const;
  const linkOf = (entry: AuditEntry) => {
    cleanup();
    renderSignedIn(['audit:read', 'keys:read'], <AuditEntryDialog entry={entry} onClose={() => {}} />);
    const links = screen.getAllByRole<HTMLAnchorElement>('link');
    return links.map(({ textContent, search }) => `${textContent} ${search}`).at(-1);
  };
  expect(linkOf({ ...ENTRY, actor, jobId: 'job_1' })).toBe('progress ?job=job_1');
  const target = { type: 'job', id: 'job_1', name: 'delete' } as const;
  expect(linkOf({ ...ENTRY, actor, action: 'job.create', target })).toBe('delete ?job=job_1');
});
