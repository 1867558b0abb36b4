import { useState } from 'react';
import { useChange } from '../../api/change.ts';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { bodyOfDraft, EMPTY_TOKEN } from './token-draft.ts';
import { TokenForm } from './token-form.tsx';
import { TokenSecret } from './token-secret.tsx';

/** Creates a token, then shows its secret once. */
export function CreateToken({ onClose }: { readonly onClose: () => void }) {
  const [draft, setDraft] = useState(EMPTY_TOKEN);
  const [made, setMade] = useState<{
    readonly adminTokenId: string;
    readonly name: string;
    readonly secret: string;
  }>();
  const create = useChange((client, body: ReturnType<typeof bodyOfDraft>, key) =>
    client.POST('/tollgate/admin-token/create', { params: { header: { 'Idempotency-Key': key } }, body }),
  );
  const submit = async () => {
    setMade(await create.submit(bodyOfDraft(draft)));
  };
  if (made !== undefined)
    return (
      <Dialog title={`The token “${made.name}” is made`} dismissible={false} onClose={onClose}>
        <TokenSecret adminTokenId={made.adminTokenId} secret={made.secret} onDone={onClose} />
      </Dialog>
    );
  return (
    <Dialog wide title="Create an admin token" dismissible={!create.isPending} onClose={onClose}>
      <ChangeForm
        change={create}
        submit="Create token"
        pending="Creating…"
        makesSecret
        onSubmit={submit}
        onCancel={onClose}
      >
        <TokenForm draft={draft} onChange={setDraft} error={create.error} />
      </ChangeForm>
    </Dialog>
  );
}
