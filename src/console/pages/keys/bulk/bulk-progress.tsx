import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useChange } from '../../../api/change.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import { useLive } from '../../../api/live.ts';
import { Button } from '../../../components/forms/button.tsx';
import { DialogActions } from '../../../components/layout/dialog.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import { counted, formatNumber } from '../../../format/numbers.ts';
import styles from './bulk.module.css';

const POLL_MS = 500;
const SHOWN_FAILURES = 20;

interface BulkProgressProps {
  readonly jobId: string;
  readonly onClose: () => void;
}

/** How far a job is. It goes on when this is closed. */
export function BulkProgress({ jobId, onClose }: BulkProgressProps) {
  const { job, cancel } = useJob(jobId);
  if (job === undefined) return <p role="status">Starting…</p>;
  const { state, done, total, failedCount, failed } = job;
  const isRunning = state === 'running';
  return (
    <>
      <progress className={styles.progress} value={done} max={Math.max(total, 1)} aria-label="Keys changed" />
      <p role="status">
        {formatNumber(done)} of {counted(total, 'key')}
        {failedCount > 0 && `, ${formatNumber(failedCount)} of them not changed`}. {STATES[state]}
      </p>
      {cancel.error !== undefined && <Notice tone="failed">{faultSentence(cancel.error)}</Notice>}
      {failed.length > 0 && (
        <ul className={styles.failed} aria-label="Keys that were not changed">
          {failed.slice(0, SHOWN_FAILURES).map(({ consumerApiKeyId, code }) => (
            <li key={consumerApiKeyId}>
              <code>{consumerApiKeyId}</code> {code}
            </li>
          ))}
          {failedCount > SHOWN_FAILURES && <li>and {formatNumber(failedCount - SHOWN_FAILURES)} more</li>}
        </ul>
      )}
      <DialogActions>
        {isRunning && (
          <Button onClick={() => void cancel.submit(jobId)} aria-disabled={cancel.isPending}>
            Cancel the rest
          </Button>
        )}
        <Button look="primary" onClick={onClose}>
          {isRunning ? 'Continue in the background' : 'Close'}
        </Button>
      </DialogActions>
    </>
  );
}

const STATES = {
  running: 'The gateway goes on if you close this.',
  done: 'Done.',
  cancelled: 'Cancelled: the keys that were changed stay so.',
  stopped: 'Stopped: its admin token may not change keys any more.',
} as const;

function useJob(jobId: string) {
  const queries = useQueryClient();
  const live = useLive(
    ['job', jobId],
    (client, signal) => client.GET('/tollgate/job/{jobId}', { params: { path: { jobId } }, signal }),
    { scope: 'keys:read', pollMs: POLL_MS },
  );
  const cancel = useChange((client, id: string, key) =>
    client.POST('/tollgate/job/{jobId}/cancel', {
      params: { path: { jobId: id }, header: { 'Idempotency-Key': key } },
    }),
  );
  const hasEnded = live.data !== undefined && live.data.state !== 'running';
  // The list shows what was changed.
  useEffect(() => {
    if (hasEnded) void queries.invalidateQueries({ queryKey: ['keys'] });
  }, [hasEnded, queries]);
  return { job: live.data, cancel };
}
