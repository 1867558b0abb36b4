import { ShieldCheck } from 'lucide-react';
import { useState } from 'react';
import type { components } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { useApi } from '../../api/api-context.tsx';
import { useAnnouncedCall } from '../../api/use-announced-call.ts';
import { Button } from '../../components/forms/button.tsx';
import { CopyButton } from '../../components/forms/copy-button.tsx';
import { Dialog, DialogActions } from '../../components/layout/dialog.tsx';
import { Notice } from '../../components/states/notice.tsx';
import { counted } from '../../format/numbers.ts';
import styles from './audit.module.css';

type Verdict = components['schemas']['VerifyAuditLogResponse'];

/** Makes the gateway verify the chain of hashes, and explains the result. */
export function VerifyButton() {
  const { client } = useApi();
  const [verdict, setVerdict] = useState<Verdict>();
  const { isPending, run } = useAnnouncedCall('The log could not be checked');
  const verify = () => run(async () => setVerdict(await bodyOf(client.GET('/tollgate/audit-log/verify'))));
  return (
    <>
      <Button onClick={verify} aria-disabled={isPending}>
        <ShieldCheck aria-hidden="true" />
        {isPending ? 'Checking…' : 'Verify the log'}
      </Button>
      {verdict !== undefined && <VerdictDialog verdict={verdict} onClose={() => setVerdict(undefined)} />}
    </>
  );
}

const PROBLEMS: Readonly<Record<NonNullable<Verdict['problem']>, string>> = {
  beginning: 'The oldest entry is not the one that retention left: older ones were removed otherwise.',
  missing: 'The entry was removed.',
  changed: 'The entry was changed, put in, or follows one that was removed.',
  unknown_key:
    'The entry was written under an encryption key that is not in ENCRYPTION_KEY, or by no gateway.',
  end: 'The end of the log is not the one that was written: entries after the last one may be missing.',
};

function VerdictDialog({ verdict, onClose }: { readonly verdict: Verdict; readonly onClose: () => void }) {
  const { valid, entries, problem = 'changed', firstBroken, count, lastHash } = verdict;
  return (
    <Dialog onClose={onClose} title={valid ? 'The log is intact' : 'The log was changed'}>
      {valid ? (
        <>
          <p>
            {counted(entries, 'entry', 'entries')} checked: none was changed, removed or put in. Their hashes
            are linked under a key that is not in the database.
          </p>
          <p className={styles.remark}>
            Note the count {count} and this hash elsewhere: tollgate audit verify --expect shows later whether
            the log still has this entry.
          </p>
          <div className={styles.hash}>
            <code>{lastHash}</code>
            <CopyButton text={lastHash} what="hash" />
          </div>
        </>
      ) : (
        <Notice tone="failed">
          <code>{firstBroken}</code>: {PROBLEMS[problem]} What is older than it is intact.
        </Notice>
      )}
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      </DialogActions>
    </Dialog>
  );
}
