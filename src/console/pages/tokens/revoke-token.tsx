import { useApi } from '../../api/api-context.tsx';
import { useChange } from '../../api/change.ts';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { Notice } from '../../components/states/notice.tsx';
import { toast } from '../../components/states/toast.tsx';
import { LastUse } from '../../components/text/last-use.tsx';
import { scopeWords } from './scope-words.ts';
import type { TokenDialogProps } from './shown-token.ts';
import styles from './tokens.module.css';

/** Explains the consequences before a token is deleted for good. */
export function RevokeToken({ token, onClose }: TokenDialogProps) {
  const { adminTokenId, name, scopes, lastUsedAt } = token;
  const { whoami } = useApi();
  const isOwn = adminTokenId === whoami.adminTokenId;
  const revoke = useChange((client, _: undefined) =>
    client.DELETE('/tollgate/admin-token/{adminTokenId}', { params: { path: { adminTokenId } } }),
  );
  const submit = async () => {
    if ((await revoke.submit(undefined)) === undefined) return;
    toast.done(`The token “${name}” is revoked`);
    onClose();
  };
  return (
    <Dialog title={`Revoke the token “${name}”?`} onClose={onClose}>
      <ChangeForm
        change={revoke}
        submit="Revoke token"
        pending="Revoking…"
        isDanger
        cancel="Keep it"
        onSubmit={submit}
        onCancel={onClose}
      >
        {isOwn && (
          <Notice tone="failed">
            You are signed in with this token: you will be signed out, and can't sign in with it again.
          </Notice>
        )}
        <p className={styles.lead}>
          Its next request is rejected, on every replica. There is no way back: its user needs another one.
        </p>
        <p>
          It may: {scopeWords(scopes)}. It was <LastUse at={lastUsedAt} />. What it did stays in the audit
          log.
        </p>
      </ChangeForm>
    </Dialog>
  );
}
