import { useState } from 'react';
import type { components } from '../../../../client/management-api.ts';
import { SUGGESTED_GRACE_SECONDS } from '../../../../client/suggested-grace.ts';
import { useChange } from '../../../api/change.ts';
import { ChangeForm } from '../../../components/forms/change-form.tsx';
import { type Consequences, GraceChoice } from '../../../components/forms/grace-choice.tsx';
import { Dialog } from '../../../components/layout/dialog.tsx';
import type { KeyDialogProps } from '../key-model.ts';
import { HandoverChoice, handoverField, NO_HANDOVER } from './handover-choice.tsx';
import { NewSecret } from './new-secret.tsx';
import { RecentUse } from './recent-use.tsx';

const CONSEQUENCES: Consequences = [
  'The previous secret gets 401 from the next request on. For a secret that has leaked.',
  'Both secrets work for an hour, then only the new one.',
  'Both secrets work until this time tomorrow.',
  'Both secrets work for a week: time for a consumer to deploy the new one.',
];

/** Gives a key a new secret, and explains what happens to the present one. */
export function RotateKeyDialog({ apiKey, onClose }: KeyDialogProps) {
  const { consumerApiKeyId, name } = apiKey;
  const [graceSeconds, setGraceSeconds] = useState(SUGGESTED_GRACE_SECONDS);
  const [handover, setHandover] = useState(NO_HANDOVER);
  const [rotated, setRotated] = useState<components['schemas']['RotatedConsumerKey']>();
  const rotate = useRotation(consumerApiKeyId);
  if (rotated !== undefined)
    return (
      <Dialog title={`“${name}” has a new secret`} dismissible={false} onClose={onClose}>
        <NewSecret keyId={consumerApiKeyId} made={rotated} onDone={onClose} />
      </Dialog>
    );
  const submit = async () => {
    setRotated(await rotate.submit({ graceSeconds, ...handoverField(handover) }));
  };
  return (
    <Dialog
      title={`Rotate “${name}”`}
      description={
        <>
          <RecentUse apiKey={apiKey} />
          <p>The key keeps its id, history and counters; its consumer needs the new secret.</p>
        </>
      }
      dismissible={!rotate.isPending}
      onClose={onClose}
    >
      <ChangeForm
        change={rotate}
        submit="Rotate key"
        pending="Rotating…"
        isDanger={graceSeconds === 0}
        makesSecret
        onSubmit={submit}
        onCancel={onClose}
      >
        <GraceChoice consequences={CONSEQUENCES} chosen={graceSeconds} onChange={setGraceSeconds} />
        <HandoverChoice draft={handover} onChange={setHandover} />
      </ChangeForm>
    </Dialog>
  );
}

function useRotation(consumerApiKeyId: string) {
  return useChange((client, body: components['schemas']['RotateConsumerKeyRequest'], idempotencyKey) =>
    client.POST('/consumer-api-key/{consumerApiKeyId}/rotate', {
      params: { path: { consumerApiKeyId }, header: { 'Idempotency-Key': idempotencyKey } },
      body,
    }),
  );
}
