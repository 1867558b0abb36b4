import { Ban, CircleCheck, Pencil, RefreshCw, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useScopes } from '../../../api/api-context.tsx';
import { Button } from '../../../components/forms/button.tsx';
import { CopyButton } from '../../../components/forms/copy-button.tsx';
import { type MenuItem, MoreActions } from '../../../components/forms/menu.tsx';
import { PageHeader } from '../../../components/layout/page-header.tsx';
import { EndTime, RelativeTime } from '../../../components/text/relative-time.tsx';
import { useNow } from '../../../components/text/use-now.ts';
import { DeleteKeyDialog } from '../change/delete-key-dialog.tsx';
import { EditKeyDialog } from '../change/edit-key-dialog.tsx';
import { EnableKeyDialog } from '../change/enable-key-dialog.tsx';
import { RotateKeyDialog } from '../change/rotate-key-dialog.tsx';
import type { KeyDetail } from '../key-model.ts';
import { KeyStateBadge, keyState } from '../key-state.tsx';
import { Tags } from '../list/key-columns.tsx';
import styles from './key-page.module.css';

interface KeyHeaderProps {
  readonly apiKey: KeyDetail;
  /** The entity tag of `apiKey`. */
  readonly etag: string;
}

type Change = 'edit' | 'rotate' | 'enable' | 'delete';

/** The key's name and state, and the actions on the whole key. Actions that the token may not do are hidden. */
export function KeyHeader({ apiKey, etag }: KeyHeaderProps) {
  const { can } = useScopes();
  const [open, setOpen] = useState<Change>();
  const dialog = { apiKey, onClose: () => setOpen(undefined) };
  const items: MenuItem[] = [];
  if (can('keys:write'))
    items.push({
      label: apiKey.enabled ? 'Disable' : 'Enable',
      icon: apiKey.enabled ? Ban : CircleCheck,
      onSelect: () => setOpen('enable'),
    });
  if (can('keys:delete'))
    items.push({ label: 'Delete', icon: Trash2, danger: true, onSelect: () => setOpen('delete') });
  return (
    <>
      <PageHeader
        title={apiKey.name}
        back={{ href: '/keys', label: 'Keys' }}
        badge={<KeyStateBadge state={keyState(apiKey, useNow())} />}
        about={<About apiKey={apiKey} />}
        actions={
          <>
            {can('keys:write') && <ChangeButtons onChange={setOpen} />}
            {items.length > 0 && <MoreActions items={items} />}
          </>
        }
      />
      {open === 'edit' && <EditKeyDialog {...dialog} etag={etag} />}
      {open === 'rotate' && <RotateKeyDialog {...dialog} />}
      {open === 'enable' && <EnableKeyDialog {...dialog} />}
      {open === 'delete' && <DeleteKeyDialog {...dialog} />}
    </>
  );
}

function ChangeButtons({ onChange }: { readonly onChange: (change: Change) => void }) {
  return (
    <>
      <Button onClick={() => onChange('edit')}>
        <Pencil aria-hidden="true" />
        Edit
      </Button>
      <Button look="primary" onClick={() => onChange('rotate')}>
        <RefreshCw aria-hidden="true" />
        Rotate
      </Button>
    </>
  );
}

function About({ apiKey }: { readonly apiKey: KeyDetail }) {
  const { consumerApiKeyId, externalId, lastUsedAt, expiresAt, createdAt, tags } = apiKey;
  return (
    <span className={styles.about}>
      <span>
        <code>{consumerApiKeyId}</code>
        <CopyButton text={consumerApiKeyId} what="key id" />
      </span>
      {externalId !== null && (
        <span>
          Owner <bdi>{externalId}</bdi>
        </span>
      )}
      <span>
        {lastUsedAt === null ? (
          'Never used'
        ) : (
          <>
            Last used <RelativeTime at={lastUsedAt} />
          </>
        )}
      </span>
      <span>
        {expiresAt === null ? (
          'Never expires'
        ) : (
          <>
            Expires <EndTime at={expiresAt} />
          </>
        )}
      </span>
      <span>
        Created <RelativeTime at={createdAt} />
      </span>
      {tags.length > 0 && <Tags tags={tags} />}
    </span>
  );
}
