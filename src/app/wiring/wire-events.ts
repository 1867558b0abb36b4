import { AddressPolicy } from '../../events/delivery/address-policy.ts';
import { Deliverer } from '../../events/delivery/deliverer.ts';
import { DeliveryTask } from '../../events/delivery/delivery-task.ts';
import { nameResolver } from '../../events/delivery/resolve-name.ts';
import { DeliverySender } from '../../events/delivery/send-delivery.ts';
import { EventStreams } from '../../events/stream/event-streams.ts';
import { ThresholdEvents } from '../../events/threshold-events.ts';
import { TimedEvents } from '../../events/timed/timed-events.ts';
import { WebhookService } from '../../events/webhook-service.ts';
import { type SecretRedactor, withoutSecrets } from '../../keys/secrets/secret-redactor.ts';
import { ThresholdWatch } from '../../limiter/threshold-watch.ts';
import { idMaker } from '../../platform/id-maker.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import { PostgresKeyOutbox } from '../../storage/postgres/events/key-outbox.ts';
import { PostgresEventReader } from '../../storage/postgres/events/postgres-event-reader.ts';
import { PostgresTimedEvents } from '../../storage/postgres/events/postgres-timed-events.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import type { RecordScope } from '../../storage/postgres/record-units.ts';
import type { Usage } from '../../usage/create-usage.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';
import type { Counting } from '../stores/counting.ts';
import { usageSeries } from './wire-usage.ts';

/** Events as the rest of the replica uses them. */
export interface WiredEvents {
  /** The service of webhooks, in the record store or in a unit of work. */
  readonly webhooksIn: (scope: RecordScope) => WebhookService;
  readonly streams: EventStreams;
  /** Undefined: none is watched. */
  readonly thresholds: ThresholdWatch | undefined;
  /** For metrics. */
  readonly delivering: {
    readonly deliverer: Pick<Deliverer, 'attempts'>;
    readonly task: Pick<DeliveryTask, 'backlog'>;
    /** Undefined: none are made. */
    readonly thresholdEvents: Pick<ThresholdEvents, 'dropped'> | undefined;
  };
  /** Call it once the tables exist. */
  readonly startDelivering: () => void;
}

/** What events are made of. */
export interface EventParts {
  readonly records: Records;
  readonly counting: Pick<Counting, 'shared' | 'counters'>;
  readonly usage: Pick<Usage, 'pending'>;
  readonly vault: SecretVault;
  readonly redactor: SecretRedactor;
}

/** Builds webhooks, their deliveries, and what makes events without a change. */
export function wireEvents(
  context: ReplicaContext,
  { records, counting, usage, vault, redactor }: EventParts,
): WiredEvents {
  const { settings, platform, shutdown } = context;
  const series = usageSeries(context, { records, counting, usage });
  const { clock, random, log } = platform;
  const { eventsSource: source } = settings;
  const rules = { allowHttp: settings.webhookAllowHttp, allowedNetworks: settings.webhookAllowedNetworks };
  const policy = new AddressPolicy(rules, nameResolver());
  const { webhooks: repository, deliveries: queue } = records;
  const sender = new DeliverySender(policy, clock);
  const deliverer = new Deliverer({ queue, repository, sender, vault, source, clock, random, log });
  const timed = new TimedEvents({
    store: new PostgresTimedEvents(records.db),
    usageCompleteUntilMs: () => series.completeUntilMs(),
    makeId: idMaker('', clock, random),
    mask: withoutSecrets,
  });
  const task = new DeliveryTask({ deliverer, timed, log, monotonicMs: () => clock.monotonicMs() });
  shutdown.add('deliveries to webhooks', CLOSE_DEADLINE_MS, () => task.stop());
  const makers = {
    makeId: idMaker('whk_', clock, random),
    makeDeliveryId: idMaker('dlv_', clock, random),
  };
  const webhooksIn = (scope: RecordScope) => {
    const wake = (): void => void scope.afterCommit(async () => task.wake());
    return new WebhookService({ repository: scope.webhooks, policy, vault, source, random, ...makers, wake });
  };
  const reader = new PostgresEventReader(records.db);
  const streams = new EventStreams({ reader, source, clock, wake: () => task.wake() });
  const { thresholds, thresholdEvents } = wireThresholds(context, { records, counting, redactor });
  const delivering = { deliverer, task, thresholdEvents };
  return { webhooksIn, streams, thresholds, delivering, startDelivering: () => task.start() };
}

interface WiredThresholds {
  readonly thresholds: ThresholdWatch | undefined;
  readonly thresholdEvents: ThresholdEvents | undefined;
}

/** Must be closed after what decides and settles, and before the stores. */
function wireThresholds(
  { settings, platform, shutdown }: ReplicaContext,
  { records, counting: { counters }, redactor }: Pick<EventParts, 'records' | 'counting' | 'redactor'>,
): WiredThresholds {
  const { eventsThresholds } = settings;
  if (eventsThresholds.length === 0) return { thresholds: undefined, thresholdEvents: undefined };
  const { clock, random, log } = platform;
  const outbox = new PostgresKeyOutbox(records.db);
  const thresholdEvents = new ThresholdEvents({
    ...{ outbox, log, makeId: idMaker('', clock, random) },
    mask: (customerId) => redactor.masked(customerId),
  });
  const thresholds = new ThresholdWatch({
    ...{ thresholds: eventsThresholds, counters },
    onPassed: (passed) => thresholdEvents.add(passed),
    onLost: () => thresholdEvents.drop(),
  });
  shutdown.add('events of thresholds', CLOSE_DEADLINE_MS, async () => {
    await thresholds.stop();
    await thresholdEvents.stop();
  });
  return { thresholds, thresholdEvents };
}
