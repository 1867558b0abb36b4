/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { describe, expect, it } from '@jest/globals';
import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import type { ReactElement } from 'react';
import { CreateKeyDialog } from '../../../src/console/pages/keys/change/create-key-dialog.tsx';
import { EditKeyDialog } from '../../../src/console/pages/keys/change/edit-key-dialog.tsx';
import { KEY } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const close = () => undefined;
const edit = <EditKeyDialog apiKey={KEY} etag={'"1"'} onClose={close} />;

const gateway = withScriptedGateway();

const show = (dialog: ReactElement) => gateway.render(['keys:read', 'keys:write'], dialog);
const field = (label: RegExp) => screen.getByLabelText<HTMLTextAreaElement>(label);
const section = () => screen.getByText(/^Where it may be used/).closest('details') as HTMLDetailsElement;

/** Fills a field of the section with the fields that most keys do not use, and folds it. */
function fillUnseen(label: RegExp, value: string): void {
  fireEvent.change(field(label), { target: { value } });
  section().open = false;
}

describe('the form of a key', () => {
  it.each([
    ['Create key', <CreateKeyDialog key="create" onClose={close} />],
    ['Save', edit],
  ])('leads to metadata that is no JSON, and sends nothing: %s', (submit, dialog) => {
    show(dialog);
    fillUnseen(/^Metadata/, '{"team": "mobile"');
    fireEvent.click(screen.getByRole('button', { name: submit }));
    expect([section().open, document.activeElement]).toEqual([true, field(/^Metadata/)]);
    expect(gateway.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  it('leads to the field that the gateway rejects', async () => {
    gateway.reply(400, { error: 'It is invalid.', errors: [{ field: 'allowedIps[0]', message: 'is none' }] });
    show(edit);
    fillUnseen(/^Allowed addresses/, '203.0.113');
    fireEvent.click(screen.getByRole('button', { name: 'Save' }));
    await screen.findByText('Nothing was saved: see below.');
    await waitFor(() => expect(document.activeElement).toBe(field(/^Allowed addresses/)));
    expect(section().open).toBe(true);
  });

  it('keeps its section open while a person empties it, and opens it for a key that uses it', () => {
    show(<CreateKeyDialog onClose={close} />);
    expect(section().open).toBe(false);
    section().open = true;
    fireEvent.change(field(/^Allowed addresses/), { target: { value: '1' } });
    fireEvent.change(field(/^Allowed addresses/), { target: { value: '' } });
    expect(section().open).toBe(true);
    cleanup();
    show(<EditKeyDialog apiKey={{ ...KEY, allowedIps: ['::1'] }} etag={'"1"'} onClose={close} />);
    expect(section().open).toBe(true);
    fireEvent.change(field(/^Allowed addresses/), { target: { value: '' } });
    expect(section().open).toBe(true);
  });
});
