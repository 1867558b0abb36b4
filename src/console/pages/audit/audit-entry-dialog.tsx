import { CopyButton } from '../../components/forms/copy-button.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { Facts } from '../../components/layout/facts.tsx';
import { PlainTable } from '../../components/layout/plain-table.tsx';
import { PageLink } from '../../components/text/page-link.tsx';
import { exactTime } from '../../format/exact-time.ts';
import styles from './audit.module.css';
import {
  type AuditEntry,
  actionWords,
  actorName,
  actorTypeWords,
  targetPage,
  valueWords,
} from './audit-words.ts';

interface AuditEntryDialogProps {
  readonly entry: AuditEntry;
  readonly onClose: () => void;
}

/** An entry in full: who made the change and why, and each field before and after. */
export function AuditEntryDialog({ entry, onClose }: AuditEntryDialogProps) {
  const { actor, target, changes, reason, requestId, address, outcome, auditId, at, action, jobId } = entry;
  const fields = Object.entries(changes).filter(([, { from, to }]) => valueWords(from) !== valueWords(to));
  return (
    <Dialog wide onClose={onClose} title={`${actorName(actor)} ${actionWords(action)}`}>
      {fields.length > 0 && <Difference fields={fields} />}
      <Facts
        facts={[
          ['When', exactTime(Date.parse(at))],
          ['Target', <Target key="target" target={target} />],
          ['Actor', actorTypeWords(actor)],
          ...(actor.email === undefined ? [] : [['Email', <bdi key="email">{actor.email}</bdi>] as const]),
          ...(actor.subject === undefined
            ? []
            : [['Subject', <code key="subject">{actor.subject}</code>] as const]),
          ...(actor.adminTokenId === null
            ? []
            : [['Token', <code key="token">{actor.adminTokenId}</code>] as const]),
          ['Reason', <bdi key="reason">{reason ?? 'none given'}</bdi>],
          ['Outcome', outcome === 'success' ? 'done' : outcome.replaceAll('_', ' ')],
          ['From address', <code key="address">{address}</code>],
          ['Request', <CopiedId key="request" id={requestId} what="request id" />],
          ['Entry', <code key="entry">{auditId}</code>],
          ...(jobId === null
            ? []
            : [
                [
                  'Change of many keys',
                  <Target key="job" target={{ type: 'job', id: jobId, name: 'progress' }} />,
                ] as const,
              ]),
        ]}
      />
    </Dialog>
  );
}

type FieldChange = readonly [field: string, AuditEntry['changes'][string]];

function Difference({ fields }: { readonly fields: readonly FieldChange[] }) {
  return (
    <div className={styles.scroll}>
      <PlainTable name="Difference" heads={[['Field'], ['Before'], ['After']]}>
        {fields.map(([field, { from, to }]) => (
          <tr key={field}>
            <th scope="row">{field}</th>
            <td>
              <bdi>{valueWords(from)}</bdi>
            </td>
            <td>
              <bdi>{valueWords(to)}</bdi>
            </td>
          </tr>
        ))}
      </PlainTable>
    </div>
  );
}

function Target({ target }: Pick<AuditEntry, 'target'>) {
  const page = targetPage(target);
  return (
    <>
      {page === undefined ? (
        <bdi>{target.name ?? ''}</bdi>
      ) : (
        <PageLink {...page}>{target.name ?? target.id}</PageLink>
      )}{' '}
      <CopiedId id={target.id} what="id of the target" />
    </>
  );
}

function CopiedId({ id, what }: { readonly id: string; readonly what: string }) {
  return (
    <>
      <code>{id}</code>
      <CopyButton text={id} what={what} />
    </>
  );
}
