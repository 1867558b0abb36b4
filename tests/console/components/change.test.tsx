/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { describe, expect, it } from '@jest/globals';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { useChange } from '../../../src/console/api/change.ts';
import { fieldMessage } from '../../../src/console/api/fault-kind.ts';
import { Field, Input } from '../../../src/console/components/forms/field.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

function CreateKey() {
  const [name, setName] = useState('');
  const [done, setDone] = useState(0);
  const create = useChange((client, body: { name: string }, key) =>
    client.POST('/consumer-api-key/create', { body, params: { header: { 'Idempotency-Key': key } } }),
  );
  const submit = async () => {
    if ((await create.submit({ name })) !== undefined) setDone((count) => count + 1);
  };
  return (
    <>
      <Field label="Name" error={fieldMessage(create.error, 'name')}>
        {(control) => <Input {...control} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      <button type="button" onClick={submit}>
        Create
      </button>
      <p>
        done {done}, {create.errorKind ?? 'no error'}
      </p>
    </>
  );
}

const show = () => gateway.render(['keys:write'], <CreateKey />);
const keysSent = () => gateway.requests.map(({ headers }) => headers['idempotency-key']);

describe('a form of the console', () => {
  it('makes one of a double click', async () => {
    gateway.reply(201, { id: 'key_1' });
    show();
    const user = userEvent.setup();
    await user.type(screen.getByLabelText('Name'), 'mobile');
    await user.dblClick(screen.getByText('Create'));
    await screen.findByText(/^done [1-9]/);
    // Whichever of the two came first: both carry one key, and the gateway performs once.
    expect(new Set(keysSent()).size).toBe(1);
  });

  it('sends the same Idempotency-Key again after a failure, another one after a change', async () => {
    gateway.reply(503, { error: 'Away.', code: 'store_unavailable' });
    show();
    const user = userEvent.setup();
    await user.type(screen.getByLabelText('Name'), 'mobile');
    await user.click(screen.getByText('Create'));
    await screen.findByText('done 0, unavailable');
    gateway.reply(201, { id: 'key_1' });
    await user.click(screen.getByText('Create'));
    await screen.findByText('done 1, no error');
    await user.type(screen.getByLabelText('Name'), ' app');
    await user.click(screen.getByText('Create'));
    await screen.findByText('done 2, no error');
    const [first, second, third] = keysSent();
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  it.each([
    [404, 'key_not_found', 'a new'],
    [409, 'secret_taken', 'a new'],
    [409, 'idempotency_in_progress', 'the same'],
    // The gateway rejects these before it looks for the response to an earlier attempt, which may have been performed.
    [403, 'missing_scope', 'the same'],
    [429, 'too_many_requests', 'the same'],
    // Of something else than the gateway.
    [404, undefined, 'the same'],
  ])('retries after %i %s with %s Idempotency-Key', async (status, code, which) => {
    gateway.reply(status, { error: 'No.', code });
    show();
    const user = userEvent.setup();
    await user.type(screen.getByLabelText('Name'), 'mobile');
    await user.click(screen.getByText('Create'));
    await screen.findByText(/^done 0, (?!no error)/);
    gateway.reply(201, { id: 'key_1' });
    await user.click(screen.getByText('Create'));
    await screen.findByText('done 1, no error');
    const [first, second] = keysSent();
    expect(second === first ? 'the same' : 'a new').toBe(which);
  });

  it('shows the error beside its field, and loses nothing that was typed', async () => {
    gateway.reply(400, {
      error: 'The body is not valid.',
      code: 'invalid_body',
      errors: [{ field: 'name', message: 'must not be empty' }],
    });
    show();
    const user = userEvent.setup();
    await user.type(screen.getByLabelText('Name'), 'x');
    await user.click(screen.getByText('Create'));
    await screen.findByText('must not be empty');
    const field = screen.getByLabelText('Name');
    expect(field.getAttribute('aria-invalid')).toBe('true');
    const described = document.getElementById(field.getAttribute('aria-describedby') ?? '');
    expect(described?.textContent).toBe('must not be empty');
    expect((field as HTMLInputElement).value).toBe('x');
    expect(await axeFaults()).toEqual([]);
  });
});
