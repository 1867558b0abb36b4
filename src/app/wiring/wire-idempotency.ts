import { IdempotentRequests } from '../../idempotency/idempotent-requests.ts';
import type { ResponseStore } from '../../idempotency/response-store.ts';
import type { HandoverService } from '../../keys/handovers/handover-service.ts';
import { loggedRun, PeriodicTask } from '../../platform/periodic-task.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import { runEach } from '../../storage/postgres/run-each.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';

/** The pause between two removals of expired responses; the longer one after failures. Milliseconds. */
const PRUNING_PAUSE_MS = 600_000;
const LONGEST_PRUNING_PAUSE_MS = 3_600_000;

/** Builds what remembers the responses to idempotent requests. From time to time removes expired ones, and what expired links keep. */
export function wireIdempotency<Unit>(
  { platform, shutdown }: ReplicaContext,
  store: ResponseStore<Unit>,
  { vault, handovers }: { readonly vault: SecretVault; readonly handovers: Pick<HandoverService, 'prune'> },
): IdempotentRequests<Unit> {
  const { clock, log, random } = platform;
  const requests = new IdempotentRequests({ store, vault, clock });
  const prune = (goesOn: () => boolean) =>
    runEach([() => requests.prune(goesOn), () => handovers.prune(goesOn)]);
  const pruning = new PeriodicTask(
    (goesOn) =>
      loggedRun(
        () => prune(goesOn),
        log,
        'expired responses and links could not be removed; it is tried again',
      ),
    { random, pauseMs: PRUNING_PAUSE_MS, longestPauseMs: LONGEST_PRUNING_PAUSE_MS },
  );
  shutdown.add('pruning of responses', CLOSE_DEADLINE_MS, () => pruning.stop());
  pruning.start();
  return requests;
}
