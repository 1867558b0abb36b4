import { DegradationEvents } from '../../events/degradation-events.ts';
import { Readiness } from '../../observability/readiness.ts';
import { ReadinessWatch } from '../../observability/readiness-watch.ts';
import { idMaker } from '../../platform/id-maker.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';
import type { Counting } from '../stores/counting.ts';
import { openCounting, openRecordStore } from '../stores/open-stores.ts';
import { RecordsPreparation } from '../stores/records-preparation.ts';

/** The stores of a replica, and their health checks. */
export interface Stores {
  readonly records: Records;
  readonly counting: Counting;
  readonly preparation: RecordsPreparation;
  readonly readiness: Readiness;
}

/** Opens the stores and starts to watch them. Stores may be unavailable; only the embedded one must open, otherwise this rejects. */
export async function wireStores(context: ReplicaContext, vault: SecretVault): Promise<Stores> {
  const { settings, platform, shutdown } = context;
  const records = await openRecordStore(settings, platform, {
    chainSecrets: vault,
    beforeChange: () => preparation.requireOpenKeys(),
  });
  shutdown.add('records', CLOSE_DEADLINE_MS, () => records.close());
  const counting = openCounting(settings, platform, (replicaId) =>
    watchDegradation(context, records, replicaId),
  );
  shutdown.add('counting', CLOSE_DEADLINE_MS, () => counting.close());

  const preparation = new RecordsPreparation({ records, settings, vault, log: platform.log });
  shutdown.add('preparation of the records', CLOSE_DEADLINE_MS, () => preparation.stop());
  const components = [preparation, ...(counting.component ? [counting.component] : [])];
  const readiness = new Readiness(components);
  const watch = new ReadinessWatch(readiness, platform);
  shutdown.add('readiness watch', CLOSE_DEADLINE_MS, () => watch.stop());
  watch.start();
  return { records, counting, preparation, readiness };
}

function watchDegradation(
  { settings, platform, shutdown }: ReplicaContext,
  { outbox }: Pick<Records, 'outbox'>,
  replicaId: string,
): DegradationEvents {
  const { clock, random } = platform;
  const mode = settings.limiterFailureMode;
  const makeId = idMaker('deg_', clock, random);
  const events = new DegradationEvents({ outbox, clock, makeId, replicaId, mode });
  shutdown.add('events of degradation', CLOSE_DEADLINE_MS, () => events.stop());
  return events;
}
