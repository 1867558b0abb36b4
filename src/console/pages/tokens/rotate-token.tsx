import { useState } from 'react';
import { SUGGESTED_GRACE_SECONDS } from '../../../client/suggested-grace.ts';
import { useApi } from '../../api/api-context.tsx';
import { useChange } from '../../api/change.ts';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { type Consequences, GraceChoice } from '../../components/forms/grace-choice.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { Notice } from '../../components/states/notice.tsx';
import type { TokenDialogProps } from './shown-token.ts';
import { TokenSecret } from './token-secret.tsx';

const CONSEQUENCES: Consequences = [
  'The previous secret gets 401 from the next request on. For a secret that has leaked.',
  'Both secrets work for an hour: time to replace it by hand.',
  'Both secrets work for a day: time for a deployment.',
  'Both secrets work for a week. So does a copy in the wrong hands.',
];

/** Gives a token a new secret. The previous one stays valid for a grace period. */
export function RotateToken({ token, onClose }: TokenDialogProps) {
  const { whoami } = useApi();
  const [graceSeconds, setGraceSeconds] = useState(SUGGESTED_GRACE_SECONDS);
  const [secret, setSecret] = useState<string>();
  const rotate = useRotation(token.adminTokenId);
  const submit = async () => {
    const rotated = await rotate.submit({ graceSeconds });
    setSecret(rotated?.secret);
  };
  if (secret !== undefined)
    return (
      <Dialog title={`The new secret of “${token.name}”`} dismissible={false} onClose={onClose}>
        <TokenSecret adminTokenId={token.adminTokenId} secret={secret} onDone={onClose} />
      </Dialog>
    );
  return (
    <Dialog
      title={`Rotate the token “${token.name}”?`}
      description="It gets a new secret, and keeps its name, scopes and history."
      dismissible={!rotate.isPending}
      onClose={onClose}
    >
      <ChangeForm
        change={rotate}
        submit="Rotate token"
        pending="Rotating…"
        makesSecret
        onSubmit={submit}
        onCancel={onClose}
      >
        {token.adminTokenId === whoami.adminTokenId && graceSeconds === 0 && (
          <Notice tone="limited">
            You are signed in with this token. This tab goes on with the new secret, everything else that uses
            the previous one is signed out.
          </Notice>
        )}
        <GraceChoice consequences={CONSEQUENCES} chosen={graceSeconds} onChange={setGraceSeconds} />
      </ChangeForm>
    </Dialog>
  );
}

function useRotation(adminTokenId: string) {
  const { whoami, adoptSecret } = useApi();
  return useChange((client, body: { graceSeconds: number }, key) => {
    const rotation = client.POST('/tollgate/admin-token/{adminTokenId}/rotate', {
      params: { path: { adminTokenId }, header: { 'Idempotency-Key': key } },
      body,
    });
    return adminTokenId === whoami.adminTokenId ? adoptSecret(rotation) : rotation;
  });
}
