import type { ReactNode } from 'react';
import { CopyButton } from '../../components/forms/copy-button.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { PageLink } from '../../components/text/page-link.tsx';
import { exactTime } from '../../format/exact-time.ts';
import styles from './audit.module.css';
import { type AuditEntry, actionWords, actorName, targetPage, valueWords } from './audit-words.ts';

interface AuditEntryDialogProps {
  readonly entry: AuditEntry;
  readonly onClose: () => void;
}

/** An entry in full: who made the change and why, and each field before and after. */
export function AuditEntryDialog({ entry, onClose }: AuditEntryDialogProps) {
  const { actor, target, changes, reason, requestId, address, outcome, auditId, at, action } = entry;
  const page = targetPage(target);
  const fields = Object.entries(changes).filter(([, { from, to }]) => valueWords(from) !== valueWords(to));
  return (
    <Dialog wide onClose={onClose} title={`${actorName(actor)} ${actionWords(action)}`}>
      {fields.length > 0 && <Difference fields={fields} />}
      <dl className={styles.facts}>
        <Fact name="When">{exactTime(Date.parse(at))}</Fact>
        <Fact name="Target">
          {page === undefined ? (
            <bdi>{target.name ?? ''}</bdi>
          ) : (
            <PageLink {...page}>{target.name ?? target.id}</PageLink>
          )}{' '}
          <code>{target.id}</code>
          <CopyButton text={target.id} what="id of the target" />
        </Fact>
        {actor.adminTokenId !== null && (
          <Fact name="Token">
            <code>{actor.adminTokenId}</code>
          </Fact>
        )}
        <Fact name="Reason">
          <bdi>{reason ?? 'none given'}</bdi>
        </Fact>
        <Fact name="Outcome">{outcome === 'success' ? 'done' : outcome.replaceAll('_', ' ')}</Fact>
        <Fact name="From address">
          <code>{address}</code>
        </Fact>
        <Fact name="Request">
          <code>{requestId}</code>
          <CopyButton text={requestId} what="request id" />
        </Fact>
        <Fact name="Entry">
          <code>{auditId}</code>
        </Fact>
      </dl>
    </Dialog>
  );
}

type FieldChange = readonly [field: string, AuditEntry['changes'][string]];

function Difference({ fields }: { readonly fields: readonly FieldChange[] }) {
  return (
    <div className={styles.scroll}>
      <table className={styles.changes} aria-label="Difference">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
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
        </tbody>
      </table>
    </div>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
