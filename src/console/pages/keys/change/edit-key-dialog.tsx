import { useState } from 'react';
import { useApi } from '../../../api/api-context.tsx';
import { changedFields } from '../../../api/changed-fields.ts';
import { readTagged } from '../../../api/live.ts';
import { ChangeForm } from '../../../components/forms/change-form.tsx';
import { Dialog } from '../../../components/layout/dialog.tsx';
import { toast } from '../../../components/states/toast.tsx';
import type { KeyDialogProps } from '../key-model.ts';
import { useKeyUpdate } from './key-change.ts';
import { KeyConflict } from './key-conflict.tsx';
import { draftOf, fieldsOf, type KeyDraft } from './key-draft.ts';
import { KeyForm } from './key-form.tsx';

interface EditKeyDialogProps extends KeyDialogProps {
  readonly etag: string;
}

interface Version {
  readonly draft: KeyDraft;
  readonly etag: string;
}

/** Changes a key. If it was changed elsewhere while the dialog was open, both versions are shown, and one is chosen. */
export function EditKeyDialog({ apiKey, etag, onClose }: EditKeyDialogProps) {
  // The version when the dialog opened: `apiKey` may change while its fields are edited.
  const [base, setBase] = useState<Version>(() => ({ draft: draftOf(apiKey), etag }));
  const [draft, setDraft] = useState(base.draft);
  const { theirs, readTheirs, forgetTheirs } = useTheirVersion(apiKey.consumerApiKeyId);
  const update = useKeyUpdate(apiKey.consumerApiKeyId);

  const save = async (on: Version) => {
    const body = changedFields(fieldsOf(base.draft), fieldsOf(draft));
    if (Object.keys(body).length === 0) return onClose();
    const saved = await update.submit({ body, etag: on.etag });
    if (saved === undefined) return readTheirs();
    toast.done('The key is changed', 'It holds with the next request.');
    onClose();
  };
  const mergeTheirs = (version: Version) => {
    // Fields that were not edited here take the values of the other version.
    setDraft({ ...version.draft, ...touched(base.draft, draft) });
    setBase(version);
    forgetTheirs();
    update.reset();
  };
  const isConflict = update.errorKind === 'conflict';
  if (isConflict && theirs !== undefined)
    return (
      <Dialog
        wide
        // What was typed is lost only by "Discard mine".
        onClose={() => mergeTheirs(theirs)}
        title="This key has changed since you opened it"
        description="By another administrator, or by an earlier attempt of yours to save. Your changes are still here."
      >
        <KeyConflict
          base={base.draft}
          theirs={theirs.draft}
          mine={draft}
          onTakeTheirs={onClose}
          onBack={() => mergeTheirs(theirs)}
          onKeepMine={() => save(theirs)}
        />
      </Dialog>
    );
  return (
    <Dialog title="Edit the key" onClose={onClose}>
      <ChangeForm
        change={update}
        submit="Save"
        pending="Saving…"
        onSubmit={() => save(base)}
        onCancel={onClose}
      >
        <KeyForm draft={draft} onChange={setDraft} error={update.error} />
      </ChangeForm>
    </Dialog>
  );
}

/**
 * The version that was saved meanwhile, by another administrator or by an attempt whose response was lost. If it can't be read, the form
 * shows why the key could not be saved.
 */
function useTheirVersion(consumerApiKeyId: string) {
  const { client } = useApi();
  const [theirs, setTheirs] = useState<Version>();
  const readTheirs = async (): Promise<void> => {
    const call = client.GET('/consumer-api-key/{consumerApiKeyId}', {
      params: { path: { consumerApiKeyId }, query: { reveal: 'false' } },
    });
    const read = await readTagged(call).catch(() => undefined);
    if (read?.etag !== undefined) setTheirs({ draft: draftOf(read.body), etag: read.etag });
  };
  return { theirs, readTheirs, forgetTheirs: () => setTheirs(undefined) };
}

/** The fields of the form that were edited. */
function touched(from: KeyDraft, to: KeyDraft): Partial<KeyDraft> {
  const names = Object.keys(to) as (keyof KeyDraft)[];
  return Object.fromEntries(names.filter((name) => from[name] !== to[name]).map((name) => [name, to[name]]));
}
