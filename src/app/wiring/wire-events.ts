import { AddressPolicy } from '../../events/delivery/address-policy.ts';
import { Deliverer } from '../../events/delivery/deliverer.ts';
import { DeliveryTask } from '../../events/delivery/delivery-task.ts';
import { DeliverySender, resolveName } from '../../events/delivery/send-delivery.ts';
import { EventStreams } from '../../events/stream/event-streams.ts';
import { WebhookService } from '../../events/webhook-service.ts';
import type { SecretVault } from '../../keys/secrets/secret-vault.ts';
import { PostgresEventReader } from '../../storage/postgres/events/postgres-event-reader.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';

/** Events as the rest of the replica uses them. */
export interface WiredEvents {
  readonly webhooks: WebhookService;
  readonly streams: EventStreams;
  /** Call it once the tables exist. */
  readonly startDelivering: () => void;
}

/** Builds webhooks and their deliveries. */
export function wireEvents(
  { settings, platform, shutdown }: ReplicaContext,
  { records, vault }: { readonly records: Records; readonly vault: SecretVault },
): WiredEvents {
  const { clock, random, log } = platform;
  const { eventsSource: source } = settings;
  const rules = { allowHttp: settings.webhookAllowHttp, allowedNetworks: settings.webhookAllowedNetworks };
  const policy = new AddressPolicy(rules, resolveName);
  const { webhooks: repository, deliveries: queue, unitOfWork } = records;
  const sender = new DeliverySender(policy, clock);
  const deliverer = new Deliverer({ queue, repository, sender, vault, source, clock, random, log });
  const task = new DeliveryTask(deliverer, { log, monotonicMs: () => clock.monotonicMs() });
  shutdown.add('deliveries to webhooks', CLOSE_DEADLINE_MS, () => task.stop());
  const wake = (): void => void unitOfWork.afterCommit(async () => task.wake());
  const webhooks = new WebhookService({ repository, policy, vault, source, clock, random, wake });
  const streams = new EventStreams({ reader: new PostgresEventReader(records.db), source, clock });
  return { webhooks, streams, startDelivering: () => task.start() };
}
