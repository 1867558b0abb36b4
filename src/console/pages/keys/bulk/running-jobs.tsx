import { useLive } from '../../../api/live.ts';
import { useAddress } from '../../../api/use-address.ts';
import { Button } from '../../../components/forms/button.tsx';
import { Dialog } from '../../../components/layout/dialog.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import { counted, formatNumber } from '../../../format/numbers.ts';
import { BulkProgress } from './bulk-progress.tsx';
import { BULK_ACTIONS } from './bulk-request.ts';

const POLL_MS = 15_000;
/** At most 50 run; the newest may have ended. */
const LATEST = 100;
const SHOWN = 3;

/** The changes of many keys that run, each with a way to its progress. The address names the one that is shown, which may have ended. */
export function RunningJobs() {
  const [query, change] = useAddress();
  const shown = query.get('job') ?? '';
  const { data } = useLive(
    ['jobs'],
    (client, signal) => client.GET('/tollgate/job', { params: { query: { limit: LATEST } }, signal }),
    { scope: 'keys:read', pollMs: POLL_MS },
  );
  const running = data?.jobs.filter(({ state }) => state === 'running') ?? [];
  return (
    <>
      {running.slice(0, SHOWN).map(({ jobId, action, total }) => (
        <Notice
          key={jobId}
          tone="neutral"
          action={
            <Button small onClick={() => change({ job: jobId })}>
              Show progress
            </Button>
          }
        >
          “{BULK_ACTIONS[action].label}” is running for {counted(total, 'key')}.
        </Notice>
      ))}
      {running.length > SHOWN && (
        <Notice tone="neutral">and {formatNumber(running.length - SHOWN)} more</Notice>
      )}
      {shown !== '' && (
        <Dialog title="Changing keys" onClose={() => change({ job: '' })}>
          <BulkProgress jobId={shown} onClose={() => change({ job: '' })} />
        </Dialog>
      )}
    </>
  );
}
