import { type FormEvent, useState } from 'react';
import { useApi } from '../../api/api-context.tsx';
import { useChange } from '../../api/change.ts';
import { Button } from '../../components/forms/button.tsx';
import { Dialog, DialogActions } from '../../components/layout/dialog.tsx';
import { Notice } from '../../components/states/notice.tsx';
import type { AdminToken } from './admin-token.ts';
import { TokenFault } from './token-fault.tsx';
import { TokenSecret } from './token-secret.tsx';
import styles from './tokens.module.css';

const GRACES = [
  {
    seconds: 0,
    label: 'Now',
    means: 'The old secret is rejected from now on: whoever uses it is cut off until they have the new one.',
  },
  { seconds: 3600, label: 'In 1 hour', means: 'Both secrets work for an hour: time to exchange it by hand.' },
  { seconds: 86_400, label: 'In 24 hours', means: 'Both secrets work for a day: time for a deployment.' },
  {
    seconds: 604_800,
    label: 'In 7 days',
    means: 'Both secrets work for a week. So does a copy that somebody should not have.',
  },
] as const;

interface RotateTokenProps {
  readonly token: AdminToken;
  readonly onClose: () => void;
}

/** Gives a token another secret; the old one works on for a time of grace. */
export function RotateToken({ token, onClose }: RotateTokenProps) {
  const { whoami } = useApi();
  const [graceSeconds, setGraceSeconds] = useState<number>(86_400);
  const [secret, setSecret] = useState<string>();
  const rotate = useChange((client, body: { graceSeconds: number }, key) =>
    client.POST('/tollgate/admin-token/{adminTokenId}/rotate', {
      params: { path: { adminTokenId: token.adminTokenId }, header: { 'Idempotency-Key': key } },
      body,
    }),
  );
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const rotated = await rotate.submit({ graceSeconds });
    setSecret(rotated?.secret);
  };
  if (secret !== undefined)
    return (
      <Dialog open title={`The new secret of “${token.name}”`} dismissible={false} onClose={onClose}>
        <TokenSecret adminTokenId={token.adminTokenId} secret={secret} onDone={onClose} />
      </Dialog>
    );
  return (
    <Dialog
      open
      title={`Rotate the token “${token.name}”?`}
      description="It gets a new secret, and keeps its name, scopes and history."
      onClose={onClose}
    >
      <form onSubmit={submit}>
        <TokenFault error={rotate.error} />
        {token.adminTokenId === whoami.adminTokenId && graceSeconds === 0 && (
          <Notice tone="limited">
            You are signed in with this token, and will have to sign in with the new secret.
          </Notice>
        )}
        <fieldset className={styles.fieldset}>
          <legend>The old secret ends</legend>
          {GRACES.map(({ seconds, label, means }) => (
            <label key={seconds} className={styles.grace}>
              <input
                type="radio"
                name="grace"
                checked={graceSeconds === seconds}
                onChange={() => setGraceSeconds(seconds)}
              />
              <span>
                <strong>{label}</strong>
                <span>{means}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" aria-disabled={rotate.isPending}>
            {rotate.isPending ? 'Rotating…' : 'Rotate token'}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
