import { useState } from 'react';
import { useChange } from '../../api/change.ts';
import { useLive } from '../../api/live.ts';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { Skeleton } from '../../components/states/skeleton.tsx';
import { toast } from '../../components/states/toast.tsx';
import { now } from '../../format/now.ts';
import type { TokenDialogProps } from './shown-token.ts';
import { changesOf, draftOf } from './token-draft.ts';
import { TokenForm } from './token-form.tsx';

/** Changes a token. Its new scopes apply from its next request on. */
export function EditToken({ token, onClose }: TokenDialogProps) {
  const path = { adminTokenId: token.adminTokenId };
  // Not polled: saving finds changes by others. Each opening reads the token again: the cached version of an earlier one may be outdated.
  const [openedAt] = useState(now);
  const current = useLive(
    ['tokens', token.adminTokenId, openedAt],
    (client, signal) => client.GET('/tollgate/admin-token/{adminTokenId}', { params: { path }, signal }),
    { scope: 'tokens:write', pollMs: false },
  );
  return (
    <Dialog wide title={`Edit the token “${token.name}”`} onClose={onClose}>
      <LiveState live={current} what="the token" skeleton={<Skeleton />}>
        {(read) => <EditForm token={read} etag={current.etag} onClose={onClose} />}
      </LiveState>
    </Dialog>
  );
}

/** Edits the first version that it gets: the data of the dialog is read again when the tab comes into view. */
function EditForm(props: TokenDialogProps & { readonly etag: string | undefined }) {
  const { onClose } = props;
  const [{ token, etag }] = useState(props);
  const [draft, setDraft] = useState(() => draftOf(token));
  const save = useChange((client, body: ReturnType<typeof changesOf>) =>
    client.PATCH('/tollgate/admin-token/{adminTokenId}', {
      params: {
        path: { adminTokenId: token.adminTokenId },
        header: etag === undefined ? {} : { 'If-Match': etag },
      },
      body,
    }),
  );
  const submit = async () => {
    const changes = changesOf(token, draft);
    if (Object.keys(changes).length === 0) return onClose();
    if ((await save.submit(changes)) === undefined) return;
    toast.done(`The token “${draft.name}” is saved`, 'It holds with its next request.');
    onClose();
  };
  return (
    <ChangeForm
      change={save}
      record="token"
      submit="Save changes"
      pending="Saving…"
      onSubmit={submit}
      onCancel={onClose}
    >
      <TokenForm draft={draft} onChange={setDraft} error={save.error} />
    </ChangeForm>
  );
}
