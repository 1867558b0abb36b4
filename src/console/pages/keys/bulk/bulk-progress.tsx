import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { components } from '../../../../client/management-api.ts';
import { useScopes } from '../../../api/api-context.tsx';
import { useChange } from '../../../api/change.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import { useLive } from '../../../api/live.ts';
import { Button } from '../../../components/forms/button.tsx';
import { focusAround } from '../../../components/forms/focus-around.ts';
import { DialogActions } from '../../../components/layout/dialog.tsx';
import { LiveState } from '../../../components/states/live-state.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import { counted, formatNumber } from '../../../format/numbers.ts';
import styles from './bulk.module.css';
import { BULK_ACTIONS } from './bulk-request.ts';

const POLL_MS = 500;
const SHOWN_FAILURES = 20;

interface BulkProgressProps {
  readonly jobId: string;
  readonly onClose: () => void;
}

/** How far a job is. It goes on when this is closed. */
export function BulkProgress({ jobId, onClose }: BulkProgressProps) {
  const live = useJob(jobId);
  return (
    <LiveState live={live} what="the progress" skeleton={<p role="status">Starting…</p>}>
      {(job) => <Progress job={job} onClose={onClose} />}
    </LiveState>
  );
}

type Job = components['schemas']['Job'];

function Progress({ job, onClose }: { readonly job: Job; readonly onClose: () => void }) {
  const { jobId, action, state, done, total, failedCount, failed } = job;
  const { can } = useScopes();
  const cancel = useCancellation(jobId);
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
        {isRunning && can(BULK_ACTIONS[action].scope) && (
          <Button
            ref={focusAround}
            onClick={() => void cancel.submit(undefined)}
            aria-disabled={cancel.isPending}
          >
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
  stopped: 'Stopped: who began it may not change keys any more.',
} as const;

function useJob(jobId: string) {
  const queries = useQueryClient();
  const [state, setState] = useState<Job['state']>();
  const live = useLive(
    ['job', jobId],
    (client, signal) => client.GET('/tollgate/job/{jobId}', { params: { path: { jobId } }, signal }),
    { scope: 'keys:read', ...(state !== undefined && { pollMs: state === 'running' && POLL_MS }) },
  );
  if (live.data !== undefined && live.data.state !== state) setState(live.data.state);
  const hasEnded = live.data !== undefined && live.data.state !== 'running';
  // The lists show what was changed, and what runs.
  useEffect(() => {
    if (!hasEnded) return;
    for (const list of ['keys', 'jobs']) void queries.invalidateQueries({ queryKey: [list] });
  }, [hasEnded, queries]);
  return live;
}

function useCancellation(jobId: string) {
  return useChange((client, _: undefined, key) =>
    client.POST('/tollgate/job/{jobId}/cancel', {
      params: { path: { jobId }, header: { 'Idempotency-Key': key } },
    }),
  );
}
