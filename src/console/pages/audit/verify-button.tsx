import { ShieldCheck } from 'lucide-react';
import { useState } from 'react';
import type { components } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { useApi } from '../../api/api-context.tsx';
import { faultSentence } from '../../api/fault-kind.ts';
import { Button } from '../../components/forms/button.tsx';
import { CopyButton } from '../../components/forms/copy-button.tsx';
import { Dialog, DialogActions } from '../../components/layout/dialog.tsx';
import { Notice } from '../../components/states/notice.tsx';
import { toast } from '../../components/states/toast.tsx';
import { counted } from '../../format/numbers.ts';
import styles from './audit.module.css';

type Verdict = components['schemas']['VerifyAuditLogResponse'];

/** Makes the gateway verify the chain of hashes, and explains the result. */
export function VerifyButton() {
  const { client } = useApi();
  const [isPending, setPending] = useState(false);
  const [verdict, setVerdict] = useState<Verdict>();
  const verify = async () => {
    setPending(true);
    try {
      setVerdict(await bodyOf(client.GET('/tollgate/audit-log/verify')));
    } catch (error) {
      toast.failed('The log could not be checked', faultSentence(error));
    }
    setPending(false);
  };
  return (
    <>
      <Button onClick={() => void verify()} disabled={isPending}>
        <ShieldCheck aria-hidden="true" />
        {isPending ? 'Checking…' : 'Verify the log'}
      </Button>
      {verdict !== undefined && <VerdictDialog verdict={verdict} onClose={() => setVerdict(undefined)} />}
    </>
  );
}

function VerdictDialog({ verdict, onClose }: { readonly verdict: Verdict; readonly onClose: () => void }) {
  const { valid, entries, firstBroken, lastHash } = verdict;
  return (
    <Dialog open onClose={onClose} title={valid ? 'The log is intact' : 'The log was changed'}>
      {valid ? (
        <p>
          {counted(entries, 'entry', 'entries')} checked: none was changed, removed or put in. Each holds the
          hash of the one before.
        </p>
      ) : (
        <Notice tone="failed">
          The entry <code>{firstBroken}</code> was changed, put in, or follows one that was removed. What is
          older than it is intact.
        </Notice>
      )}
      {lastHash !== null && lastHash !== undefined && (
        <>
          <p className={styles.remark}>
            Note the hash of the newest entry elsewhere: a log that was recalculated has another one.
          </p>
          <div className={styles.hash}>
            <code>{lastHash}</code>
            <CopyButton text={lastHash} what="hash" />
          </div>
        </>
      )}
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      </DialogActions>
    </Dialog>
  );
}
