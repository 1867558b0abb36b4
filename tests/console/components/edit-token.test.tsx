/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, expect, it } from '@jest/globals';
import { useQueryClient } from '@tanstack/react-query';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { EditToken } from '../../../src/console/pages/tokens/edit-token.tsx';
import { TOKEN } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();
const user = userEvent.setup();
beforeEach(() => {
  gateway.reply(200, TOKEN, { etag: '"1"' });
  gateway.render(['tokens:write', 'keys:read'], <Stage />);
});

/** A page with the dialog, and all that makes the console read its data again. */
function Stage() {
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [reads, setReads] = useState(0);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Open
      </button>
      <button type="button" onClick={() => queries.invalidateQueries().then(() => setReads(reads + 1))}>
        Read again
      </button>
      <p>read again {reads}</p>
      {isOpen && <EditToken token={TOKEN} onClose={() => setOpen(false)} />}
    </>
  );
}

const nameField = () => screen.findByRole<HTMLInputElement>('textbox', { name: 'Name' });
const changes = () => gateway.requests.filter(({ method }) => method === 'PATCH');

it('the form of a token keeps what was typed while another administrator changes it', async () => {
  await user.click(screen.getByText('Open'));
  await user.type(await nameField(), ' of Alice');
  gateway.reply(200, { ...TOKEN, name: 'Renamed' }, { etag: '"2"' });
  await user.click(screen.getByText('Read again'));
  await screen.findByText('read again 1');
  gateway.reply(412, { error: 'It was changed.', code: 'version_mismatch' });
  await user.click(screen.getByText('Save changes'));
  await screen.findByText(/^This token has changed since you opened it/);
  expect((await nameField()).value).toBe('Deployment of Alice');
  expect(changes().map(({ headers, body }) => [headers['if-match'], JSON.parse(body)])).toEqual([
    ['"1"', { name: 'Deployment of Alice' }],
  ]);
});

it('the form of a token starts from its present version each time it is opened', async () => {
  await user.click(screen.getByText('Open'));
  await nameField();
  await user.click(screen.getByText('Cancel'));
  gateway.reply(200, { ...TOKEN, name: 'Renamed' }, { etag: '"2"' });
  await user.click(screen.getByText('Open'));
  expect((await nameField()).value).toBe('Renamed');
});

it('the form of a token shows beside a list which of its entries is not valid', async () => {
  await user.click(screen.getByText('Open'));
  await user.type(await nameField(), '!');
  gateway.reply(400, {
    ...{ error: 'The request body is not valid.', code: 'invalid_body' },
    errors: [
      { field: 'onlyTags[0]', message: 'must be a tag' },
      { field: 'allowedIps[1]', message: 'must be an address' },
    ],
  });
  await user.click(screen.getByText('Save changes'));
  await screen.findByText('Nothing was saved: see below.');
  screen.getByText('Entry 1 must be a tag.');
  screen.getByText('Entry 2 must be an address.');
});
