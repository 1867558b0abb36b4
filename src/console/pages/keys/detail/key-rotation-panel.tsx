import { useState } from 'react';
import { useScopes } from '../../../api/api-context.tsx';
import { useChange } from '../../../api/change.ts';
import { Button } from '../../../components/forms/button.tsx';
import { FormFault } from '../../../components/forms/form-fault.tsx';
import { Dialog, DialogActions } from '../../../components/layout/dialog.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { toast } from '../../../components/states/toast.tsx';
import { EndTime, RelativeTime } from '../../../components/text/relative-time.tsx';
import type { KeyDetail } from '../key-model.ts';
import styles from './key-page.module.css';

type Rotation = NonNullable<KeyDetail['rotation']>;

/** Shows the rotation in progress, and can end it. */
export function KeyRotationPanel({ apiKey }: { readonly apiKey: KeyDetail }) {
  const { createdAt, rotation, consumerApiKeyId } = apiKey;
  const { can } = useScopes();
  const [keep, setKeep] = useState<'new' | 'previous'>();
  if (rotation === null)
    return (
      <Panel title="Rotation">
        <p className={styles.faint}>No rotation is under way: the key has one secret.</p>
      </Panel>
    );
  return (
    <Panel
      title="Rotation"
      about="Both secrets work until the previous one ends"
      action={
        can('keys:write') && (
          <span className={styles.actions}>
            <Button small onClick={() => setKeep('previous')}>
              Undo
            </Button>
            <Button small onClick={() => setKeep('new')}>
              End now
            </Button>
          </span>
        )
      }
    >
      <Timeline createdAt={createdAt} rotation={rotation} />
      {keep !== undefined && (
        <EndRotationDialog
          keyId={consumerApiKeyId}
          keep={keep}
          rotation={rotation}
          onClose={() => setKeep(undefined)}
        />
      )}
    </Panel>
  );
}

interface TimelineProps {
  readonly createdAt: string;
  readonly rotation: Rotation;
}

function Timeline({ createdAt, rotation }: TimelineProps) {
  return (
    <ol className={styles.timeline}>
      <li>
        Key made <RelativeTime at={createdAt} />
      </li>
      <li>
        New secret made <RelativeTime at={rotation.startedAt} />
      </li>
      <li data-now="">
        <PreviousUse rotation={rotation} />
      </li>
      <li>
        The previous secret ends <EndTime at={rotation.previousValidUntil} />
      </li>
    </ol>
  );
}

function PreviousUse({ rotation: { previousLastUsedAt } }: Pick<TimelineProps, 'rotation'>) {
  if (previousLastUsedAt === null) return 'The previous secret was not used since';
  return (
    <>
      The previous secret was last used <RelativeTime at={previousLastUsedAt} />
    </>
  );
}

interface EndRotationDialogProps {
  readonly keyId: string;
  readonly keep: 'new' | 'previous';
  readonly rotation: Rotation;
  readonly onClose: () => void;
}

function EndRotationDialog({ keyId, keep, rotation, onClose }: EndRotationDialogProps) {
  const end = useChange((client, kept: 'new' | 'previous', idempotencyKey) =>
    client.POST('/consumer-api-key/{consumerApiKeyId}/end-rotation', {
      params: { path: { consumerApiKeyId: keyId }, header: { 'Idempotency-Key': idempotencyKey } },
      body: { keep: kept },
    }),
  );
  const submit = async () => {
    if ((await end.submit(keep)) === undefined) return;
    toast.done(keep === 'new' ? 'The previous secret has ended' : 'The rotation is undone');
    onClose();
  };
  return (
    <Dialog
      title={keep === 'new' ? 'End the previous secret now?' : 'Undo the rotation?'}
      description={
        keep === 'new' ? (
          <>
            <PreviousUse rotation={rotation} />. It gets 401 from the next request on.
          </>
        ) : (
          'The new secret gets 401 from the next request on, and the previous one stays. Who has the new one already needs the old one again.'
        )
      }
      onClose={onClose}
    >
      <FormFault error={end.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="danger" aria-disabled={end.isPending} onClick={submit}>
          {keep === 'new' ? 'End the previous secret' : 'Undo the rotation'}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
