import { useMutation } from '@tanstack/react-query';
import { ShieldQuestionMark } from 'lucide-react';
import { useState } from 'react';
import { bodyOf } from '../../../../client/management-client.ts';
import { useApi, useScopes } from '../../../api/api-context.tsx';
import { faultSentence, fieldMessage } from '../../../api/fault-kind.ts';
import { Button } from '../../../components/forms/button.tsx';
import { SecretField, TextField } from '../../../components/forms/field.tsx';
import { Form } from '../../../components/forms/form.tsx';
import { Dialog, SubmitActions } from '../../../components/layout/dialog.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import { KeyVerdict } from './key-verdict.tsx';

const EMPTY = { secret: '', method: 'GET', path: '/', customerId: '', address: '', origin: '' };

type Draft = typeof EMPTY;

const REQUEST_FIELDS = [
  { name: 'method', label: 'Method' },
  { name: 'path', label: 'Path' },
  { name: 'customerId', label: 'Customer', optional: true },
  {
    name: 'address',
    label: 'Address',
    optional: true,
    hint: 'Where the request comes from, for a key that is restricted to addresses.',
  },
  {
    name: 'origin',
    label: 'Origin',
    optional: true,
    hint: 'Of the web page that makes the request, for a key that is restricted to origins.',
  },
] as const;

/** Opens the dialog. Nothing without the scope for it. */
export function TryKeyButton() {
  const { can } = useScopes();
  const [isOpen, setOpen] = useState(false);
  if (!can('keys:verify')) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <ShieldQuestionMark aria-hidden="true" />
        Try a key
      </Button>
      {isOpen && <TryKeyDialog onClose={() => setOpen(false)} />}
    </>
  );
}

/** Shows what a request with a secret would get now. Nothing is counted. */
function TryKeyDialog({ onClose }: { readonly onClose: () => void }) {
  const { client } = useApi();
  const [draft, setDraft] = useState(EMPTY);
  const verdict = useMutation({
    mutationFn: (sent: Draft) => bodyOf(client.POST('/api-keys/verify', { body: bodyFor(sent) })),
  });
  const { data, error, isPending } = verdict;
  const set = (change: Partial<Draft>) => {
    // A verdict is about the request that was sent, not about the one that is typed now. One that is on its way is dropped.
    verdict.reset();
    setDraft((before) => ({ ...before, ...change }));
  };
  return (
    <Dialog
      title="Try a key"
      description="The gateway decides as if the request came now, and counts nothing."
      onClose={onClose}
    >
      <Form onSubmit={() => isPending || verdict.mutate(draft)}>
        {error !== null && <Notice tone="failed">{faultSentence(error)}</Notice>}
        <SecretField
          label="Secret"
          error={fieldMessage(error, 'secret')}
          value={draft.secret}
          onText={(secret) => set({ secret })}
        />
        {REQUEST_FIELDS.map(({ name, ...field }) => (
          <TextField
            key={name}
            {...field}
            error={fieldMessage(error, name)}
            value={draft[name]}
            onText={(text) => set({ [name]: text })}
          />
        ))}
        {data !== undefined && <KeyVerdict verdict={data} />}
        <SubmitActions
          submit="Try"
          pending="Trying…"
          cancel="Close"
          isPending={isPending}
          onCancel={onClose}
        />
      </Form>
    </Dialog>
  );
}

/** Fields that are empty are not sent: the gateway takes its defaults for them. */
function bodyFor({ secret, ...request }: Draft) {
  const fields = Object.entries({ ...request, method: request.method.toUpperCase() });
  const given = fields.map(([name, text]) => [name, text.trim()]).filter(([, text]) => text !== '');
  return { secret: secret.trim(), ...Object.fromEntries(given), count: false };
}
