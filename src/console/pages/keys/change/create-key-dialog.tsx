import { useState } from 'react';
import { useLocation } from 'wouter';
import type { components } from '../../../../client/management-api.ts';
import { useChange } from '../../../api/change.ts';
import { ChangeForm } from '../../../components/forms/change-form.tsx';
import { SecretField } from '../../../components/forms/field.tsx';
import { Dialog } from '../../../components/layout/dialog.tsx';
import { HandoverChoice, handoverField, NO_HANDOVER } from './handover-choice.tsx';
import { EMPTY_DRAFT, fieldsOf, messageFor } from './key-draft.ts';
import { KeyForm } from './key-form.tsx';
import { NewSecret } from './new-secret.tsx';

type CreateBody = components['schemas']['CreateConsumerKeyRequest'];

/** Creates a key, then shows its secret once. */
export function CreateKeyDialog({ onClose }: { readonly onClose: () => void }) {
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const [ownSecret, setOwnSecret] = useState('');
  const [handover, setHandover] = useState(NO_HANDOVER);
  const [made, setMade] = useState<components['schemas']['CreatedConsumerKey']>();
  const [, navigate] = useLocation();
  const create = useCreation();
  const submit = async () => {
    const secret = ownSecret.trim();
    const body = { ...fieldsOf(draft), ...(secret !== '' && { secret }), ...handoverField(handover) };
    setMade(await create.submit(body));
  };
  if (made !== undefined)
    return (
      <Dialog title={`The key “${made.name}” is made`} dismissible={false} onClose={onClose}>
        <NewSecret
          keyId={made.id}
          made={made}
          onDone={() => navigate(`/keys/${made.id}`, { replace: true })}
        />
      </Dialog>
    );
  return (
    <Dialog title="Create a key" dismissible={!create.isPending} onClose={onClose}>
      <ChangeForm
        change={create}
        submit="Create key"
        pending="Creating…"
        makesSecret
        onSubmit={submit}
        onCancel={onClose}
      >
        <KeyForm draft={draft} onChange={setDraft} error={create.error} />
        <SecretField
          label="Existing secret"
          optional
          error={messageFor(create.error, 'secret')}
          hint="To move a key here without a change for its consumer. Otherwise the gateway makes one."
          value={ownSecret}
          onText={setOwnSecret}
        />
        <HandoverChoice draft={handover} onChange={setHandover} />
      </ChangeForm>
    </Dialog>
  );
}

function useCreation() {
  return useChange((client, body: CreateBody, idempotencyKey) =>
    client.POST('/consumer-api-key/create', {
      params: { header: { 'Idempotency-Key': idempotencyKey } },
      body,
    }),
  );
}
