import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, BlockList } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { StoreBusy } from '../../src/errors.ts';
import { AddressPolicy } from '../../src/events/delivery/address-policy.ts';
import { Deliverer, type DelivererOptions } from '../../src/events/delivery/deliverer.ts';
import type { Delivery, DeliveryQueue } from '../../src/events/delivery/delivery.ts';
import { DeliveryTask } from '../../src/events/delivery/delivery-task.ts';
import { DeliverySender } from '../../src/events/delivery/send-delivery.ts';
import { rotateSealedWebhooks, type SealedWebhooks } from '../../src/events/rotate-sealed-webhooks.ts';
import { openHeaders, openSecrets } from '../../src/events/sealed-webhook.ts';
import { TimedEvents } from '../../src/events/timed/timed-events.ts';
import { type RevealedWebhook, WebhookService } from '../../src/events/webhook-service.ts';
import { ROOT } from '../../src/permissions/principal.ts';
import { idMaker } from '../../src/platform/id-maker.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { PostgresTimedEvents } from '../../src/storage/postgres/events/postgres-timed-events.ts';
import type { Repositories } from '../../src/storage/postgres/repositories.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey } from '../support/sample-records.ts';
import { until } from '../support/until.ts';

const DAY_MS = 86_400_000;
const SOURCE = '/test';

/** A request that a receiver got. */
interface Received {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An endpoint that responds with what the test sets. */
class Receiver {
  readonly received: Received[] = [];
  respond: (
    req: IncomingMessage,
  ) => { readonly status: number; readonly headers?: Record<string, string> } | 'never' = () => ({
    status: 204,
  });
  readonly #server: Server;

  constructor() {
    this.#server = createServer((req, res) => {
      let body = '';
      req.on('data', (chunk: Buffer) => {
        body += chunk;
      });
      req.on('end', () => {
        this.received.push({ headers: req.headers as Record<string, string>, body });
        const response = this.respond(req);
        if (response !== 'never') res.writeHead(response.status, response.headers).end();
      });
    });
  }

  async open(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/in`;
  }

  get ids(): readonly (string | undefined)[] {
    return this.received.map(({ headers }) => headers['webhook-id']);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

let store: TestRecords;
let clock: ManualClock;
let service: WebhookService;
let receiver: Receiver;
let deliverers: Deliverer[] = [];
/** Gives the database the clock of the test, which can be moved. */
let movedClock: jest.SpiedFunction<DeliveryQueue['hold']>;
const OLD_KEY = systemRandom.bytes(32);
const vault = new SecretVault([OLD_KEY], systemRandom);
const allowedNetworks = new BlockList();
allowedNetworks.addSubnet('127.0.0.0', 8, 'ipv4');
const policy = new AddressPolicy({ allowHttp: true, allowedNetworks }, async () => []);

beforeAll(async () => {
  store = await createPostgresRecords();
});
afterAll(() => store.remove());

beforeEach(async () => {
  // The real time: the receiver's library compares it with the timestamp.
  clock = new ManualClock(Math.floor(performance.timeOrigin + performance.now()));
  const { webhooks: repository, deliveries } = store.records;
  const hold = deliveries.hold.bind(deliveries);
  movedClock = jest
    .spyOn(deliveries, 'hold')
    .mockImplementation(async (...lease) =>
      (await hold(...lease)) === undefined ? undefined : clock.nowMs(),
    );
  service = new WebhookService({
    ...{ vault, source: SOURCE, random: systemRandom, repository, policy, wake: () => {} },
    makeId: idMaker('whk_', clock, systemRandom),
    makeDeliveryId: idMaker('dlv_', clock, systemRandom),
  });
  receiver = new Receiver();
  await receiver.open();
  deliverers = [];
});
afterEach(async () => {
  movedClock.mockRestore();
  for (const deliverer of deliverers) await deliverer.stop();
  await store.records.db.deleteFrom('leases').execute();
  receiver.close();
  for (const { id } of await store.records.webhooks.list({ onlyTags: [], limit: 100 }))
    await store.records.webhooks.delete(id, change());
});

function deliverer(options: Partial<DelivererOptions> = {}): Deliverer {
  const made = new Deliverer({
    queue: store.records.deliveries,
    repository: store.records.webhooks,
    sender: new DeliverySender(policy, clock),
    ...{ vault, source: SOURCE, clock, random: systemRandom, log: pino({ level: 'silent' }) },
    ...options,
  });
  deliverers.push(made);
  return made;
}

const change = () => sampleChange({ atMs: clock.nowMs() });

function webhook(fields: object = {}): Promise<RevealedWebhook> {
  const defaults = {
    ...{ url: receiver.url, events: ['tollgate.key.*'], onlyTags: [], description: '', enabled: true },
    ...{ batch: false, headers: {}, externalId: null },
  };
  return service.create({ ...defaults, ...fields }, ROOT, change());
}

/** Makes a change of which webhooks hear. */
async function makeKey(
  tags: readonly string[] = [],
  { keys }: Pick<Repositories, 'keys'> = store.records,
): Promise<string> {
  const key = sampleKey({ tags });
  await keys.insert(key, change());
  return key.id;
}

/** Writes an event of usage with each of these lists of tags. */
async function makeUsage(tagsOfEvents: readonly (readonly string[])[], data = '{}'): Promise<void> {
  const { db } = store.records;
  const { last_event } = await db.selectFrom('audit_log_ends').select('last_event').executeTakeFirstOrThrow();
  const rows = tagsOfEvents.map((tags, index) => ({
    ...{ sequence: last_event + index + 1, id: `usage-${index}`, type: 'tollgate.usage.hour' },
    ...{ subject: 'key_1', at: new Date(clock.nowMs()), tags, data },
  }));
  await db.insertInto('events').values(rows).execute();
  await db
    .updateTable('audit_log_ends')
    .set({ last_event: last_event + rows.length })
    .execute();
}

async function deliver(by: Deliverer): Promise<void> {
  await by.run();
  await by.settled();
}

async function deliveriesOf({ webhook: { id } }: RevealedWebhook): Promise<readonly Delivery[]> {
  const page = { limit: 100, afterId: undefined, status: undefined };
  return (await service.deliveries(id, page, ROOT)).deliveries;
}

function changeTo(webhookId: string, changes: object): Promise<unknown> {
  return service.update(webhookId, { changes, principal: ROOT }, change());
}

/** As if this replica had been paused, and another one had taken the lease. */
async function giveLeaseAway(): Promise<void> {
  await sql`UPDATE leases SET holder = 'another', held_until = now() + interval '1 h'`.execute(
    store.records.db,
  );
}

/** Deliveries that succeeded long ago, and no others. */
async function makeEnded(webhookId: string, number: number): Promise<void> {
  await store.records.db.deleteFrom('webhook_deliveries').execute();
  await sql`
    INSERT INTO webhook_deliveries (id, webhook_id, created_at, event_type, event_ids, tags, is_batch, body, status, ended_at)
    SELECT 'dlv_' || number, ${webhookId}, 'epoch', 'tollgate.key.created', '{}', '{}', false, '{}', 'succeeded', 'epoch'
    FROM generate_series(1, ${number}::int) AS number`.execute(store.records.db);
}

/** Makes each statement fail that removes more than so many deliveries, until the returned function is called. */
async function failToRemoveMoreThan(number: number): Promise<() => Promise<unknown>> {
  const { db } = store.records;
  await sql`
    CREATE FUNCTION fail_as_the_test_wants() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM gone) > ${sql.raw(String(number))} THEN RAISE EXCEPTION 'as the test wants'; END IF;
      RETURN NULL;
    END $$`.execute(db);
  await sql`
    CREATE TRIGGER fail AFTER DELETE ON webhook_deliveries REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION fail_as_the_test_wants()`.execute(db);
  return () => sql`DROP FUNCTION fail_as_the_test_wants CASCADE`.execute(db);
}

/** Once, while a webhook is served: lets something happen, and more time pass than the lease lasts. */
function whileServing(happen: () => Promise<unknown>): void {
  const queue = store.records.deliveries;
  const fanOut = queue.fanOut.bind(queue);
  const slow = jest.spyOn(queue, 'fanOut').mockImplementation(async (...page) => {
    slow.mockRestore();
    const isMade = await fanOut(...page);
    await happen();
    clock.advance(15_000);
    return isMade;
  });
}

const eventOf = ({ body }: Received) => JSON.parse(body);
const count = async (table: 'events' | 'webhook_deliveries') =>
  Number(
    (
      await store.records.db
        .selectFrom(table)
        .select(({ fn }) => fn.countAll<number>().as('total'))
        .executeTakeFirstOrThrow()
    ).total,
  );

describe('an event', () => {
  it('is not written without a webhook', async () => {
    const before = await count('events');
    await makeKey();
    expect(await count('events')).toBe(before);
  });

  it('of a change that is rolled back does not exist', async () => {
    await webhook();
    const before = await count('events');
    const failing = store.records.inUnit(async (unit) => {
      await makeKey([], unit);
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    expect(await count('events')).toBe(before);
  });

  it('is sent once, signed as Standard Webhooks says, with the headers of the webhook', async () => {
    const { secret } = await webhook({ headers: { authorization: 'Bearer of-the-receiver' } });
    const keyId = await makeKey();
    const by = deliverer();
    expect(await by.run()).toBe('delivering');
    await by.settled();
    await deliver(by);
    expect(receiver.received).toHaveLength(1);
    const [{ headers, body } = { headers: {}, body: '' }] = receiver.received;
    expect(new StandardWebhook(secret).verify(body, headers)).toMatchObject({
      ...{ source: SOURCE, type: 'tollgate.key.created', subject: keyId },
    });
    expect(headers).toMatchObject({
      authorization: 'Bearer of-the-receiver',
      'content-type': 'application/cloudevents+json',
    });
    expect(() => new StandardWebhook(secret).verify(body.replace('created', 'deleted'), headers)).toThrow();
  });

  it('is signed by both secrets while a rotation runs, and by the new one afterwards', async () => {
    const first = await webhook();
    const options = { graceMs: 60_000, principal: ROOT };
    const { secret, webhook: rotated } = await service.rotate(first.webhook.id, options, change());
    await makeKey();
    const by = deliverer();
    await deliver(by);
    clock.advance((rotated.previousValidUntilMs ?? 0) - clock.nowMs());
    await makeKey();
    await deliver(by);
    const verified = (secretOf: string, { headers, body }: Received): boolean => {
      try {
        return Boolean(new StandardWebhook(secretOf).verify(body, headers));
      } catch {
        return false;
      }
    };
    expect(receiver.received.map((each) => [verified(first.secret, each), verified(secret, each)])).toEqual([
      [true, true],
      [false, true],
    ]);
  });

  it('reaches only the webhooks that subscribe to its type and have only its tags', async () => {
    const tagged = await webhook({ onlyTags: ['eu'] });
    const plans = await webhook({ events: ['tollgate.plan.created'] });
    await makeKey(['eu', 'paid']);
    await makeKey(['us']);
    await deliver(deliverer());
    expect((await deliveriesOf(tagged)).map(({ status }) => status)).toEqual(['succeeded']);
    expect(await deliveriesOf(plans)).toEqual([]);
  });

  it('from before the webhook was disabled is sent once it is enabled again, and none from meanwhile', async () => {
    const made = await webhook();
    await webhook({ events: ['tollgate.plan.created'] });
    const before = await makeKey();
    const set = (enabled: boolean) =>
      service.update(made.webhook.id, { changes: { enabled }, principal: ROOT }, change());
    await set(false);
    await makeKey();
    const by = deliverer();
    await deliver(by);
    expect(receiver.received).toEqual([]);
    await set(true);
    const after = await makeKey();
    await deliver(by);
    await deliver(by);
    expect(receiver.received.map((each) => eventOf(each).subject).toSorted()).toEqual(
      [before, after].toSorted(),
    );
  });

  it('from before a short pause of the webhook is sent, and so is what it was to miss', async () => {
    const made = await webhook();
    await webhook({ events: ['tollgate.plan.created'] });
    const before = await makeKey();
    await changeTo(made.webhook.id, { enabled: false });
    const meanwhile = await makeKey();
    await changeTo(made.webhook.id, { enabled: true });
    // Only now is any of them considered.
    await deliver(deliverer());
    expect(receiver.received.map((each) => eventOf(each).subject).toSorted()).toEqual(
      [before, meanwhile].toSorted(),
    );
  });

  it('is not written while all webhooks are disabled', async () => {
    await webhook({ enabled: false });
    const before = await count('events');
    await makeKey();
    expect(await count('events')).toBe(before);
  });

  it('after a subscription became wider is sent, although a run began before', async () => {
    const made = await webhook({ events: ['tollgate.plan.*'] });
    const queue = store.records.deliveries;
    const served = queue.served.bind(queue);
    const found = jest.spyOn(queue, 'served').mockImplementationOnce(async (...page) => {
      const before = await served(...page);
      const changes = { events: ['tollgate.key.*'] };
      await service.update(made.webhook.id, { changes, principal: ROOT }, change());
      await makeKey();
      return before;
    });
    const by = deliverer();
    await deliver(by);
    found.mockRestore();
    await deliver(by);
    expect(receiver.received.map((each) => eventOf(each).type)).toEqual(['tollgate.key.created']);
  });

  it('that the webhook does not subscribe to any more is cancelled', async () => {
    const made = await webhook({ onlyTags: [] });
    await makeKey(['us']);
    receiver.respond = () => ({ status: 500 });
    const by = deliverer();
    await deliver(by);
    const changes = { onlyTags: ['eu'] };
    await service.update(made.webhook.id, { changes, principal: ROOT }, change());
    clock.advance(DAY_MS);
    await deliver(by);
    expect(receiver.received).toHaveLength(1);
    const [cancelled] = await deliveriesOf(made);
    expect(cancelled).toMatchObject({ status: 'cancelled', attempts: [{ responseStatus: 500 }] });
    const resend = () =>
      service.resend({ webhookId: made.webhook.id, deliveryId: cancelled?.id ?? '' }, ROOT, change());
    await expect(resend()).rejects.toMatchObject({ code: 'not_subscribed' });
    await service.update(made.webhook.id, { changes: { onlyTags: [] }, principal: ROOT }, change());
    await resend();
    await deliver(by);
    expect(receiver.received).toHaveLength(2);
  });
});

describe('a delivery', () => {
  it('that fails is tried ten times under one id, each with its time, and can be sent again', async () => {
    const made = await webhook();
    await makeKey();
    receiver.respond = () => ({ status: 500 });
    const by = deliverer();
    const seconds: string[] = [];
    for (let attempt = 0; attempt < 12; attempt += 1) {
      seconds.push(String(Math.floor(clock.nowMs() / 1000)));
      await deliver(by);
      // Longer than the longest pause; the webhook must not be failing for 5 days.
      clock.advance(1.1 * DAY_MS);
      await store.records.deliveries.noteHealth(made.webhook.id, false, clock.nowMs());
    }
    expect(receiver.received).toHaveLength(10);
    expect(new Set(receiver.ids).size).toBe(1);
    expect(receiver.received.map(({ headers }) => headers['webhook-timestamp'])).toEqual(
      seconds.slice(0, 10),
    );
    const [failed] = await deliveriesOf(made);
    expect(failed).toMatchObject({ status: 'failed', tries: 10, nextAttemptAtMs: null });
    receiver.respond = () => ({ status: 200 });
    const ids = { webhookId: made.webhook.id, deliveryId: failed?.id ?? '' };
    await service.resend(ids, ROOT, change());
    await deliver(by);
    expect(new Set(receiver.ids).size).toBe(1);
    expect((await deliveriesOf(made)).map(({ status }) => status)).toEqual(['succeeded']);
  });

  it('that waits for its next attempt is sent at once when it is sent again', async () => {
    const made = await webhook();
    const by = deliverer();
    receiver.respond = () => ({ status: 500 });
    await makeKey();
    await deliver(by);
    clock.advance(60_000);
    await deliver(by);
    const [waiting] = await deliveriesOf(made);
    expect(waiting).toMatchObject({ status: 'pending', tries: 2 });
    receiver.respond = () => ({ status: 200 });
    await service.resend({ webhookId: made.webhook.id, deliveryId: waiting?.id ?? '' }, ROOT, change());
    await deliver(by);
    expect(receiver.ids).toHaveLength(3);
    expect((await deliveriesOf(made)).map(({ status }) => status)).toEqual(['succeeded']);
  });

  it('is in the backlog while it is to be made: not while its webhook is disabled', async () => {
    const made = await webhook();
    const backlog = () => store.records.deliveries.backlog();
    const enable = (enabled: boolean) =>
      service.update(made.webhook.id, { changes: { enabled }, principal: ROOT }, change());
    receiver.respond = () => ({ status: 500 });
    const sinceMs = clock.nowMs();
    await makeKey();
    await deliver(deliverer());
    expect(await backlog()).toEqual({ pending: 1, oldestAtMs: sinceMs, disabled: 0 });
    await enable(false);
    expect(await backlog()).toEqual({ pending: 0, oldestAtMs: null, disabled: 0 });
    await enable(true);
    expect(await backlog()).toEqual({ pending: 1, oldestAtMs: sinceMs, disabled: 0 });
  });

  it('that fails after others writes nothing to its webhook', async () => {
    const { webhook: made } = await webhook();
    const { deliveries, db } = store.records;
    const version = () =>
      db
        .selectFrom('webhooks')
        .select(['failing_since', sql<string>`ctid::text`.as('at')])
        .where('id', '=', made.id)
        .executeTakeFirstOrThrow();
    const sinceMs = clock.nowMs();
    expect(await deliveries.noteHealth(made.id, true, sinceMs)).toBe(sinceMs);
    const first = await version();
    expect(await deliveries.noteHealth(made.id, true, sinceMs + 1)).toBe(sinceMs);
    expect(await version()).toEqual(first);
    expect(await deliveries.noteHealth(made.id, false, sinceMs + 2)).toBeNull();
    expect(await deliveries.noteHealth(made.id, true, sinceMs + 3)).toBe(sinceMs + 3);
  });

  it('that is under way is not read again', async () => {
    await webhook();
    await makeKey();
    const response = Promise.withResolvers<Awaited<ReturnType<DeliverySender['send']>>>();
    const due = jest.spyOn(store.records.deliveries, 'due');
    const by = deliverer({ sender: { send: () => response.promise } });
    await by.run();
    await until(() => due.mock.results.length === 1);
    await makeKey();
    await by.run();
    await until(() => due.mock.results.length === 2);
    const found = await Promise.all(due.mock.results.map(({ value }) => value));
    due.mockRestore();
    response.resolve({ responseStatus: 204, fault: null, retryAfter: null, durationMs: 1 });
    await by.settled();
    expect(found).toMatchObject([{ length: 1 }, { length: 1 }]);
  });

  it('that ends while others are looked for is not made again', async () => {
    await webhook();
    await makeKey();
    const response = Promise.withResolvers<Awaited<ReturnType<DeliverySender['send']>>>();
    const send = jest.fn(() => response.promise);
    const { deliveries } = store.records;
    const due = jest.spyOn(deliveries, 'due');
    const lastStep = jest.spyOn(deliveries, 'noteHealth');
    const by = deliverer({ sender: { send } });
    await by.run();
    due.mockImplementationOnce(async (...call) => {
      const found = await deliveries.due(...call);
      response.resolve({ responseStatus: 204, fault: null, retryAfter: null, durationMs: 1 });
      await until(() => lastStep.mock.results.length === 1);
      await lastStep.mock.results[0]?.value;
      await new Promise(setImmediate);
      return found;
    });
    await deliver(by);
    due.mockRestore();
    lastStep.mockRestore();
    expect(send).toHaveBeenCalledTimes(1);
  });

  it('waits as long as Retry-After asks, at most a day', async () => {
    const made = await webhook();
    await makeKey();
    receiver.respond = () => ({ status: 503, headers: { 'retry-after': '1000000' } });
    await deliver(deliverer());
    const [delivery] = await deliveriesOf(made);
    expect(delivery?.nextAttemptAtMs).toBe(clock.nowMs() + DAY_MS);
  });

  describe.each([429, 503])('to an endpoint that responds with %i and Retry-After', (status) => {
    const PAUSE_S = 3600;
    const succeed = () => ({ status: 204 });
    /** Twenty deliveries, of which the first ones have got the response. */
    async function paused(): Promise<{ readonly made: RevealedWebhook; readonly by: Deliverer }> {
      const made = await webhook();
      for (let keys = 0; keys < 20; keys += 1) await makeKey();
      receiver.respond = () => ({ status, headers: { 'retry-after': String(PAUSE_S) } });
      const by = deliverer();
      await deliver(by);
      receiver.respond = succeed;
      return { made, by };
    }

    it('waits until then and loses no attempt, as do all others', async () => {
      const { made, by } = await paused();
      const begun = receiver.received.length;
      // Those that were under way at the same time.
      expect(begun).toBeLessThanOrEqual(4);
      clock.advance(PAUSE_S * 1000 - 1);
      await deliver(by);
      expect(receiver.received).toHaveLength(begun);
      const tries = (await deliveriesOf(made)).map((delivery) => delivery.tries);
      expect(tries.filter((each) => each === 0)).toHaveLength(20 - begun);
      clock.advance(1);
      await deliver(by);
      const ended = await deliveriesOf(made);
      expect(ended.filter((delivery) => delivery.status === 'succeeded').length).toBeGreaterThanOrEqual(
        20 - begun,
      );
    });

    it('is made at once as a test or again, and a success ends the pause', async () => {
      const { made, by } = await paused();
      const begun = receiver.received.length;
      receiver.respond = () => ({ status: 500 });
      const testId = await service.test(made.webhook.id, ROOT, change());
      await deliver(by);
      expect(receiver.ids.slice(begun)).toEqual([testId]);
      receiver.respond = succeed;
      const again = { webhookId: made.webhook.id, deliveryId: receiver.ids[0] ?? '' };
      await service.resend(again, ROOT, change());
      await deliver(by);
      expect(receiver.ids[begun + 1]).toBe(again.deliveryId);
      expect(receiver.ids).toHaveLength(22);
    });

    it('is made at once again, also if its next attempt was due during the pause', async () => {
      const made = await webhook();
      await makeKey();
      receiver.respond = () => ({ status: 500 });
      const by = deliverer();
      await deliver(by);
      const [failed] = receiver.ids;
      await makeKey();
      receiver.respond = () => ({ status, headers: { 'retry-after': String(PAUSE_S) } });
      await deliver(by);
      expect(receiver.ids).toHaveLength(2);
      receiver.respond = succeed;
      clock.advance((PAUSE_S / 2) * 1000);
      await deliver(by);
      expect(receiver.ids).toHaveLength(2);
      const again = { webhookId: made.webhook.id, deliveryId: failed ?? '' };
      await service.resend(again, ROOT, change());
      await deliver(by);
      expect(receiver.ids[2]).toBe(failed);
    });

    it('is made once the webhook is changed', async () => {
      const { made, by } = await paused();
      const begun = receiver.received.length;
      await changeTo(made.webhook.id, { description: 'mended' });
      await deliver(by);
      expect(receiver.received).toHaveLength(20);
      expect(new Set(receiver.ids.slice(0, begun)).isDisjointFrom(new Set(receiver.ids.slice(begun)))).toBe(
        true,
      );
    });

    it('waits although a request that was under way before succeeds', async () => {
      await webhook();
      for (let keys = 0; keys < 20; keys += 1) await makeKey();
      const others = Promise.withResolvers<Awaited<ReturnType<DeliverySender['send']>>>();
      const asked = { responseStatus: status, fault: null, retryAfter: String(PAUSE_S), durationMs: 1 };
      const send = jest.fn(() => others.promise).mockResolvedValueOnce(asked);
      const by = deliverer({ sender: { send } });
      const note = jest.spyOn(store.records.deliveries, 'noteHealth');
      await by.run();
      await until(() => note.mock.calls.length === 1);
      note.mockRestore();
      others.resolve({ responseStatus: 204, fault: null, retryAfter: null, durationMs: 1 });
      await by.settled();
      await deliver(by);
      expect(send).toHaveBeenCalledTimes(4);
    });
  });

  it('that gets 410 disables the webhook at once, which is an event', async () => {
    const other = new Receiver();
    await other.open();
    const gone = await webhook();
    await webhook({ url: other.url, events: ['tollgate.webhook.disabled'] });
    await makeKey();
    receiver.respond = () => ({ status: 410 });
    const by = deliverer();
    await deliver(by);
    expect(await service.get(gone.webhook.id, ROOT)).toMatchObject({
      enabled: false,
      disabledReason: 'gone',
    });
    await makeKey();
    await deliver(by);
    expect(other.received.map((each) => eventOf(each).subject)).toEqual([gone.webhook.id]);
    expect(receiver.received).toHaveLength(1);
    other.close();
  });

  it('that gets 410 after the webhook was changed does not disable it', async () => {
    const made = await webhook();
    await makeKey();
    const by = deliverer();
    let responses = 0;
    const respondLate = Promise.withResolvers<void>();
    receiver.respond = () => {
      responses += 1;
      return { status: 410 };
    };
    const queue = store.records.deliveries;
    const noteHealth = queue.noteHealth.bind(queue);
    const late = jest.spyOn(queue, 'noteHealth').mockImplementationOnce(async (...health) => {
      await respondLate.promise;
      return noteHealth(...health);
    });
    await by.run();
    await until(async () => late.mock.calls.length > 0);
    await service.update(made.webhook.id, { changes: { description: 'moved' }, principal: ROOT }, change());
    respondLate.resolve();
    await by.settled();
    late.mockRestore();
    expect(responses).toBe(1);
    expect(await service.get(made.webhook.id, ROOT)).toMatchObject({ enabled: true, disabledReason: null });
  });

  it('is the last one when it gets 410', async () => {
    await webhook();
    for (let made = 0; made < 9; made += 1) await makeKey();
    receiver.respond = () => ({ status: 410 });
    await deliver(deliverer());
    // Those that were under way at the same time.
    expect(receiver.received.length).toBeLessThanOrEqual(4);
  });

  it.each([
    ['has a fault', new Error('a fault of this webhook')],
    ['takes longer than a statement may', new StoreBusy('postgres', new Error('statement timeout'))],
  ])('to one webhook is made although another one %s', async (_, fault) => {
    const faulty = await webhook();
    await webhook();
    await makeKey();
    const queue = store.records.deliveries;
    const fanOut = queue.fanOut.bind(queue);
    const failing = jest.spyOn(queue, 'fanOut').mockImplementation((webhookId, make) => {
      if (webhookId === faulty.webhook.id) return Promise.reject(fault);
      return fanOut(webhookId, make);
    });
    const logged = jest.fn();
    const by = deliverer({ log: pino({}, { write: logged }) });
    await deliver(by);
    // Not `behind`: then the next run would follow without a pause.
    expect(await by.run()).toBe('delivering');
    await by.settled();
    failing.mockRestore();
    expect(receiver.received).toHaveLength(1);
    expect(logged).toHaveBeenCalledTimes(1);
    await deliver(by);
    expect(receiver.received).toHaveLength(2);
  });

  describe('of a webhook whose attempts all fail', () => {
    let made: RevealedWebhook;
    let by: Deliverer;
    beforeEach(async () => {
      made = await webhook();
      by = deliverer();
      receiver.respond = () => ({ status: 500 });
      await makeKey();
    });

    const failAfter = async (pauseMs: number): Promise<string | null> => {
      clock.advance(pauseMs);
      const before = receiver.received.length;
      await deliver(by);
      expect(receiver.received).toHaveLength(before + 1);
      return (await service.get(made.webhook.id, ROOT)).disabledReason;
    };
    /** At the beginning of a delivery. */
    const failThreeTimes = async (): Promise<readonly (string | null)[]> => [
      await failAfter(0),
      await failAfter(10_000),
      await failAfter(10 * 60_000),
    ];

    it('disables the webhook after 5 days', async () => {
      expect(await failAfter(0)).toBeNull();
      for (let day = 1; day < 5; day += 1) expect(await failAfter(1.24 * DAY_MS)).toBeNull();
      expect(await failAfter(1.24 * DAY_MS)).toBe('failing');
      expect((await service.get(made.webhook.id, ROOT)).enabled).toBe(false);
    });

    it('disables the webhook after 5 days in which each attempt was of another delivery', async () => {
      receiver.respond = () => ({ status: 503, headers: { 'retry-after': '86400' } });
      const reasons = [await failAfter(0)];
      for (let made = 0; made < 5; made += 1) await makeKey();
      // They wait for the end of the pause.
      await deliver(by);
      for (let day = 1; day <= 5; day += 1) reasons.push(await failAfter(DAY_MS));
      expect(new Set(receiver.ids).size).toBe(6);
      expect(reasons).toEqual([null, null, null, null, null, 'failing']);
    });

    it('disables no webhook by one failure after a quiet time, but by the third', async () => {
      for (let attempt = 0; attempt < 10; attempt += 1) {
        await deliver(by);
        const [last] = await deliveriesOf(made);
        clock.advance((last?.nextAttemptAtMs ?? clock.nowMs()) - clock.nowMs());
      }
      expect(await deliveriesOf(made)).toMatchObject([{ status: 'failed' }]);
      clock.advance(10 * DAY_MS);
      await makeKey();
      expect(await failThreeTimes()).toEqual([null, null, 'failing']);
    });

    it('disables no webhook by one failure of what is sent again, but by the third', async () => {
      for (let day = 0; day < 3; day += 1) await failAfter(DAY_MS);
      clock.advance(4 * DAY_MS);
      const [waiting] = await deliveriesOf(made);
      await service.resend({ webhookId: made.webhook.id, deliveryId: waiting?.id ?? '' }, ROOT, change());
      expect(await failThreeTimes()).toEqual([null, null, 'failing']);
    });

    it('disables no webhook by one failure after the gateway was off, but by the third', async () => {
      await failThreeTimes();
      expect(await failAfter(5 * DAY_MS)).toBeNull();
      expect(await failAfter(DAY_MS)).toBeNull();
      expect(await failAfter(DAY_MS)).toBe('failing');
    });
  });

  it('to a slow endpoint holds up no other endpoint', async () => {
    const slow = new Receiver();
    await slow.open();
    slow.respond = () => 'never';
    await webhook({ url: slow.url });
    const fast = await webhook();
    for (let made = 0; made < 10; made += 1) await makeKey();
    const by = deliverer();
    await by.run();
    await until(async () => receiver.received.length === 10);
    expect(slow.received.length).toBeLessThanOrEqual(4);
    await until(async () => (await deliveriesOf(fast)).every(({ status }) => status === 'succeeded'));
    await by.stop();
    slow.close();
  });

  it('is made by one replica, and by the next one once it has stopped', async () => {
    await webhook();
    await makeKey();
    const [first, second] = [deliverer(), deliverer()];
    await deliver(first);
    await makeKey();
    expect(await second.run()).toBe('another replica delivers');
    expect(receiver.received).toHaveLength(1);
    await first.stop();
    await deliver(second);
    expect(receiver.received.map((each) => eventOf(each).type)).toEqual([
      'tollgate.key.created',
      'tollgate.key.created',
    ]);
    expect(new Set(receiver.ids).size).toBe(2);
  });

  it('is made by the replica at which the next webhook is made, once there was none', async () => {
    const last = await webhook();
    const [first, second] = [deliverer(), deliverer()];
    expect(await first.run()).toBe('delivering');
    await service.remove(last.webhook.id, change());
    expect(await first.run()).toBe('no webhooks');
    await webhook();
    expect(await second.run()).toBe('delivering');
  });

  it('that is under way keeps the next replica from delivering also where its webhook is disabled', async () => {
    const made = await webhook();
    await makeKey();
    const response = Promise.withResolvers<Awaited<ReturnType<DeliverySender['send']>>>();
    const send = jest.fn(() => response.promise);
    const [first, second] = [deliverer({ sender: { send } }), deliverer()];
    await first.run();
    await changeTo(made.webhook.id, { enabled: false });
    expect(await first.run()).toBe('no webhooks');
    await changeTo(made.webhook.id, { enabled: true });
    expect(await second.run()).toBe('another replica delivers');
    response.resolve({ responseStatus: 204, fault: null, retryAfter: null, durationMs: 1 });
    await first.settled();
    expect(await deliveriesOf(made)).toMatchObject([{ status: 'succeeded' }]);
  });

  it('that was read as due is not begun once a run has found its webhook disabled', async () => {
    const made = await webhook();
    for (let keys = 0; keys < 5; keys += 1) await makeKey();
    const response = Promise.withResolvers<Awaited<ReturnType<DeliverySender['send']>>>();
    const send = jest.fn(() => response.promise);
    const by = deliverer({ sender: { send } });
    await by.run();
    await until(() => send.mock.calls.length === 4);
    const { deliveries } = store.records;
    const due = deliveries.due.bind(deliveries);
    const [isRead, isDisabled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = jest.spyOn(deliveries, 'due').mockImplementationOnce(async (...asked) => {
      const found = await due(...asked);
      isRead.resolve();
      await isDisabled.promise;
      return found;
    });
    response.resolve({ responseStatus: 204, fault: null, retryAfter: null, durationMs: 1 });
    await isRead.promise;
    await changeTo(made.webhook.id, { enabled: false });
    await by.run();
    isDisabled.resolve();
    expect(await slow.mock.results[0]?.value).toHaveLength(1);
    slow.mockRestore();
    expect(send).toHaveBeenCalledTimes(4);
    await by.settled();
  });

  it('that is under way when its replica stops keeps the next replica from delivering', async () => {
    const made = await webhook();
    await makeKey();
    const response = Promise.withResolvers<Awaited<ReturnType<DeliverySender['send']>>>();
    const send = jest.fn(() => response.promise);
    const [stopped, next] = [deliverer({ sender: { send } }), deliverer()];
    await stopped.run();
    await until(() => send.mock.calls.length === 1);
    const stopping = stopped.stop();
    expect(await next.run()).toBe('another replica delivers');
    response.resolve({ responseStatus: 204, fault: null, retryAfter: null, durationMs: 1 });
    await stopping;
    expect(await deliveriesOf(made)).toMatchObject([{ status: 'succeeded' }]);
    expect(await next.run()).toBe('delivering');
  });

  it.each([
    ['moved to another address', (id: string) => changeTo(id, { url: `${receiver.url}/moved` })],
    ['disabled', (id: string) => changeTo(id, { enabled: false })],
    ['deleted', (id: string) => service.remove(id, change())],
    ['rotated', (id: string) => service.rotate(id, { graceMs: 0, principal: ROOT }, change())],
    ['served by another replica', () => giveLeaseAway()],
  ])('is not begun any more as soon as its webhook is %s', async (_how, happen) => {
    const made = await webhook();
    for (let keys = 0; keys < 9; keys += 1) await makeKey();
    const response = Promise.withResolvers<Awaited<ReturnType<DeliverySender['send']>>>();
    const send = jest.fn(() => response.promise);
    const by = deliverer({ sender: { send } });
    await by.run();
    await until(() => send.mock.calls.length === 4);
    await happen(made.webhook.id);
    response.resolve({ responseStatus: 204, fault: null, retryAfter: null, durationMs: 1 });
    await by.settled();
    expect(send).toHaveBeenCalledTimes(4);
  });

  it('is made by one replica also when a run takes longer than the lease', async () => {
    await webhook();
    await makeKey();
    const [slow, other] = [deliverer(), deliverer()];
    whileServing(() => sql`UPDATE leases SET held_until = now() - interval '1 s'`.execute(store.records.db));
    expect(await slow.run()).toBe('delivering');
    expect(await other.run()).toBe('another replica delivers');
    await slow.settled();
    expect(receiver.received).toHaveLength(1);
  });

  it('is not begun by a run that has lost the lease meanwhile, nor are others made in it', async () => {
    const webhooks = [await webhook(), await webhook()];
    await makeKey();
    const slow = deliverer();
    whileServing(giveLeaseAway);
    expect(await slow.run()).toBe('another replica delivers');
    await slow.settled();
    expect(receiver.received).toEqual([]);
    const made = await Promise.all(webhooks.map(deliveriesOf));
    expect(made.flat()).toMatchObject([{ status: 'pending', tries: 0 }]);
  });

  it('that a fault of the gateway prevents stays due, with no attempt', async () => {
    const made = await webhook();
    await makeKey();
    const logged: string[] = [];
    const log = pino({}, { write: (line) => void logged.push(JSON.parse(line).msg) });
    const by = deliverer({ sender: { send: () => Promise.reject(new Error('a fault')) }, log });
    await deliver(by);
    expect(await deliveriesOf(made)).toMatchObject([{ status: 'pending', tries: 0, attempts: [] }]);
    expect(logged).toEqual(['a delivery was not noted']);
    await by.stop();
    await deliver(deliverer());
    expect(await deliveriesOf(made)).toMatchObject([{ status: 'succeeded', tries: 1 }]);
  });

  it('that was under way when its replica was killed is made again under its id', async () => {
    await webhook();
    await makeKey();
    receiver.respond = () => 'never';
    const killed = deliverer();
    await killed.run();
    await until(async () => receiver.received.length === 1);
    // The lease of a killed replica ends by itself.
    await store.records.db.deleteFrom('leases').execute();
    receiver.respond = () => ({ status: 204 });
    await deliver(deliverer());
    expect(receiver.received).toHaveLength(2);
    expect(new Set(receiver.ids).size).toBe(1);
  });

  it('of usage is a batch where the webhook wants batches', async () => {
    const { secret } = await webhook({ events: ['tollgate.*'], batch: true });
    await makeUsage(Array.from({ length: 501 }, () => []));
    await deliver(deliverer());
    const batches = receiver.received.filter(
      ({ headers }) => headers['content-type'] === 'application/cloudevents-batch+json',
    );
    expect(batches).toHaveLength(2);
    const ids = batches.flatMap((each) => eventOf(each).map(({ id }: { id: string }) => id));
    expect(new Set(ids).size).toBe(501);
    for (const { headers, body } of batches) new StandardWebhook(secret).verify(body, headers);
  });

  it('of usage has batches of about half a megabyte at most', async () => {
    await webhook({ events: ['tollgate.usage.hour'], batch: true });
    await makeUsage(
      Array.from({ length: 60 }, () => []),
      JSON.stringify({ text: 'a'.repeat(50_000) }),
    );
    await deliver(deliverer());
    const sizes = receiver.received.map(({ body }) => body.length);
    expect(Math.max(...sizes)).toBeLessThan(600_000);
    expect(receiver.received.flatMap((each) => eventOf(each))).toHaveLength(60);
    expect(sizes).toHaveLength(6);
  });

  it('of usage is made without the events that the webhook does not subscribe to any more', async () => {
    const made = await webhook({ events: ['tollgate.usage.hour'], batch: true });
    await makeUsage([['eu'], ['us'], ['eu', 'paid'], []]);
    receiver.respond = () => ({ status: 500 });
    const by = deliverer();
    await deliver(by);
    const idsOf = (each: Received | undefined) => each && eventOf(each).map(({ id }: { id: string }) => id);
    expect(idsOf(receiver.received[0])).toEqual(['usage-0', 'usage-1', 'usage-2', 'usage-3']);
    receiver.respond = () => ({ status: 204 });
    await changeTo(made.webhook.id, { onlyTags: ['eu'] });
    clock.advance(DAY_MS);
    await deliver(by);
    expect(idsOf(receiver.received[1])).toEqual(['usage-0', 'usage-2']);
    const [{ headers, body } = { headers: {}, body: '' }] = receiver.received.slice(1);
    expect(body).not.toContain('usage-1');
    expect(headers['content-type']).toBe('application/cloudevents-batch+json');
    const [delivered] = await deliveriesOf(made);
    expect(delivered).toMatchObject({ status: 'succeeded', tries: 2 });
    const again = { webhookId: made.webhook.id, deliveryId: delivered?.id ?? '' };
    await changeTo(made.webhook.id, { onlyTags: ['none'] });
    await expect(service.resend(again, ROOT, change())).rejects.toMatchObject({ code: 'not_subscribed' });
    await deliver(by);
    expect(receiver.received).toHaveLength(2);
    expect(await deliveriesOf(made)).toMatchObject([{ status: 'succeeded' }]);
    await changeTo(made.webhook.id, { onlyTags: ['paid'] });
    await service.resend(again, ROOT, change());
    await deliver(by);
    expect(idsOf(receiver.received[2])).toEqual(['usage-2']);
  });
});

describe('where the clock of a replica is wrong, a delivery', () => {
  const HOUR_MS = 3_600_000;
  const fail = () => ({ status: 500 });
  const clockAhead = (ms: number) => new ManualClock(clock.nowMs() + ms);

  // By the clock of Postgres itself.
  beforeEach(() => movedClock.mockRestore());

  it.each([
    ['made by a replica that is 2 hours ahead', 2 * HOUR_MS, 0],
    ['whose next replica is 2 hours behind', 0, -2 * HOUR_MS],
  ])('%s is sent at once by the next replica', async (_whose, firstMs, nextMs) => {
    const made = await webhook();
    await makeKey();
    const faulty = { send: () => Promise.reject(new Error('a fault, before any attempt')) };
    const first = deliverer({ clock: clockAhead(firstMs), sender: faulty });
    await deliver(first);
    expect(await deliveriesOf(made)).toMatchObject([{ status: 'pending', tries: 0 }]);
    await first.stop();
    await deliver(deliverer({ clock: clockAhead(nextMs) }));
    expect(receiver.received).toHaveLength(1);
  });

  it('that failed at a replica which is 2 hours ahead is due after its pause', async () => {
    const made = await webhook();
    await makeKey();
    receiver.respond = fail;
    await deliver(deliverer({ clock: clockAhead(2 * HOUR_MS) }));
    const [failed] = await deliveriesOf(made);
    expect(failed).toMatchObject({ status: 'pending', tries: 1 });
    expect(failed?.nextAttemptAtMs).toBeLessThan(clock.nowMs() + HOUR_MS);
  });

  it('has a timestamp that its receiver accepts', async () => {
    const { secret } = await webhook();
    await makeKey();
    await deliver(deliverer({ clock: clockAhead(2 * HOUR_MS) }));
    const [{ headers, body } = { headers: {}, body: '' }] = receiver.received;
    expect(new StandardWebhook(secret).verify(body, headers)).toBeDefined();
  });

  it('that an administrator asks for there is sent at once', async () => {
    const made = await webhook();
    const ahead = sampleChange({ atMs: clock.nowMs() + 2 * HOUR_MS });
    const by = deliverer();
    const testId = await service.test(made.webhook.id, ROOT, ahead);
    await deliver(by);
    expect(receiver.ids).toEqual([testId]);
    await service.resend({ webhookId: made.webhook.id, deliveryId: testId }, ROOT, ahead);
    await deliver(by);
    expect(receiver.ids).toEqual([testId, testId]);
  });

  it('that fails there 5 days ahead of an earlier failure disables no webhook', async () => {
    const made = await webhook();
    receiver.respond = fail;
    const first = deliverer();
    await makeKey();
    await deliver(first);
    await first.stop();
    const itsClock = clockAhead(5 * DAY_MS);
    const ahead = deliverer({ clock: itsClock });
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      itsClock.advance(HOUR_MS);
      await store.records.db
        .updateTable('webhook_deliveries')
        .set({ next_attempt_at: sql<Date>`now() - interval '1 s'` })
        .where('status', '=', 'pending')
        .execute();
      await deliver(ahead);
      expect(receiver.received).toHaveLength(1 + attempt);
    }
    expect(await service.get(made.webhook.id, ROOT)).toMatchObject({ enabled: true, disabledReason: null });
  });

  it('that waits is as old for the metrics as it is', async () => {
    const made = await webhook();
    await makeKey();
    receiver.respond = fail;
    const ahead = clockAhead(2 * HOUR_MS);
    const by = deliverer({ clock: ahead });
    await deliver(by);
    expect(await deliveriesOf(made)).toHaveLength(1);
    const { oldestAtMs } = await by.backlog();
    expect(ahead.nowMs() - (oldestAtMs ?? 0)).toBeLessThan(HOUR_MS);
  });
});

describe('a stop while much is left to do', () => {
  const pages = Array.from({ length: 1501 }, () => []);

  /** A task that is stopped the first time that `stop` is called, and what it makes timed events from. */
  function stoppedTask() {
    const timedStore = new PostgresTimedEvents(store.records.db);
    const task = new DeliveryTask({
      deliverer: deliverer(),
      timed: new TimedEvents({
        ...{ store: timedStore, usageCompleteUntilMs: async () => undefined },
        makeId: idMaker('', clock, systemRandom),
        mask: (text) => text,
      }),
      log: pino({ level: 'silent' }),
      monotonicMs: () => clock.monotonicMs(),
    });
    const called = Promise.withResolvers<void>();
    let stopped: Promise<void> | undefined;
    const stop = () => {
      stopped ??= task.stop();
      called.resolve();
    };
    const run = async () => {
      task.start();
      await called.promise;
      await stopped;
    };
    return { timedStore, stop, run };
  }

  it('considers no further page of events, and gives the lease away', async () => {
    await webhook({ events: ['tollgate.usage.hour'], batch: true });
    await makeUsage(pages);
    const { stop, run } = stoppedTask();
    const queue = store.records.deliveries;
    const fanOut = queue.fanOut.bind(queue);
    const considered = jest.spyOn(queue, 'fanOut').mockImplementation((...page) => {
      stop();
      return fanOut(...page);
    });
    await run();
    const { length } = considered.mock.calls;
    considered.mockRestore();
    expect(length).toBe(1);
    expect(await deliverer().run()).not.toBe('another replica delivers');
  });

  it('leaves the lease to end by itself where the store took long', async () => {
    await webhook();
    const queue = store.records.deliveries;
    const fanOut = queue.fanOut.bind(queue);
    const released = jest.spyOn(queue, 'release');
    for (const tookMs of [900, 901]) {
      const { stop, run } = stoppedTask();
      const considered = jest.spyOn(queue, 'fanOut').mockImplementation((...page) => {
        stop();
        clock.advance(tookMs);
        return fanOut(...page);
      });
      await run();
      considered.mockRestore();
      expect(released).toHaveBeenCalledTimes(1);
    }
    released.mockRestore();
    await store.records.db.deleteFrom('leases').execute();
  });

  it('makes no further page of timed events', async () => {
    await webhook();
    await sql`
      INSERT INTO usage_unsent (hour, key_id, requests, successful, rate_limited, units, bytes_in, bytes_out)
      SELECT 'epoch', number, 1, 1, 0, 1, 0, 0 FROM generate_series(1, ${pages.length}::int) AS number`.execute(
      store.records.db,
    );
    const { timedStore, stop, run } = stoppedTask();
    const forget = timedStore.forgetUsage.bind(timedStore);
    const forgotten = jest.spyOn(timedStore, 'forgetUsage').mockImplementation(() => {
      stop();
      return forget();
    });
    await run();
    await sql`DELETE FROM usage_unsent`.execute(store.records.db);
    expect(forgotten).toHaveBeenCalledTimes(1);
  });

  it('removes no further page of what is old', async () => {
    const { webhook: made } = await webhook({ events: ['tollgate.plan.created'] });
    await makeKey();
    await makeEnded(made.id, 450);
    await sql`UPDATE events SET at = 'epoch'`.execute(store.records.db);
    const events = await count('events');
    const { stop, run } = stoppedTask();
    const queue = store.records.deliveries;
    const trim = queue.trim.bind(queue);
    const trimmed = jest.spyOn(queue, 'trim').mockImplementation((limits, goesOn, stopping) => {
      const stopFirst = () => {
        stop();
        return goesOn();
      };
      return trim(limits, stopFirst, stopping);
    });
    await run();
    trimmed.mockRestore();
    expect([await count('webhook_deliveries'), await count('events')]).toEqual([250, events]);
  });
});

describe('the list of deliveries', () => {
  it('has pages that are bounded by the length of the bodies, and leaves none out', async () => {
    const made = await webhook();
    for (let index = 0; index < 5; index += 1) await makeKey();
    await deliver(deliverer());
    // The first two fit on a page, the third does not.
    await sql`
      UPDATE webhook_deliveries SET status = CASE WHEN id = longest THEN 'failed' ELSE status END,
        body = repeat('x', CASE WHEN id = longest THEN 3000000 ELSE 900000 END)
      FROM (SELECT id AS longest FROM webhook_deliveries WHERE webhook_id = ${made.webhook.id} ORDER BY id DESC OFFSET 2 LIMIT 1) AS third
      WHERE webhook_id = ${made.webhook.id}`.execute(store.records.db);
    const pages: number[] = [];
    const ids: string[] = [];
    for (let afterId: string | undefined, isEnd = false; !isEnd; ) {
      const page = { limit: 4, afterId, status: undefined };
      const { deliveries, nextAfterId } = await service.deliveries(made.webhook.id, page, ROOT);
      pages.push(deliveries.length);
      ids.push(...deliveries.map(({ id }) => id));
      afterId = nextAfterId;
      isEnd = nextAfterId === undefined;
    }
    expect(pages).toEqual([2, 1, 2]);
    expect(new Set(ids).size).toBe(5);
    const failed = { limit: 4, afterId: undefined, status: 'failed' as const };
    expect((await service.deliveries(made.webhook.id, failed, ROOT)).deliveries).toHaveLength(1);
  });
});

describe('the secrets of a webhook', () => {
  it('are encrypted anew under a new encryption key, and sign as before', async () => {
    const { secret, webhook: made } = await webhook({ headers: { authorization: 'Bearer of-the-receiver' } });
    await service.rotate(made.id, { graceMs: 60_000, principal: ROOT }, change());
    const newKey = systemRandom.bytes(32);
    const [before, both, after] = [[OLD_KEY], [newKey, OLD_KEY], [newKey]].map(
      (keys) => new SecretVault(keys, systemRandom),
    );
    if (!before || !both || !after) throw new Error('there are three vaults');
    expect(await rotateSealedWebhooks(store.records.webhooks, both, () => {})).toBe(1);
    expect(await rotateSealedWebhooks(store.records.webhooks, both, () => {})).toBe(0);
    const [stored] = await store.records.webhooks.after(undefined, 10);
    if (stored === undefined) throw new Error('there is no webhook');
    expect(openSecrets(stored, clock.nowMs(), after)).toEqual([expect.any(String), secret]);
    expect(openHeaders(stored, after)).toEqual({ authorization: 'Bearer of-the-receiver' });
    expect(() => openSecrets(stored, clock.nowMs(), before)).toThrow();
  });

  it('are encrypted anew also when the webhook is changed meanwhile', async () => {
    const { secret, webhook: made } = await webhook();
    const { webhooks } = store.records;
    const newKey = systemRandom.bytes(32);
    let isChanged = false;
    const changedMeanwhile: SealedWebhooks = {
      after: (webhookId, limit) => webhooks.after(webhookId, limit),
      replace: async (present, by) => {
        if (!isChanged)
          await service.update(made.id, { changes: { description: 'b' }, principal: ROOT }, change());
        isChanged = true;
        await webhooks.replace(present, by);
      },
    };
    await rotateSealedWebhooks(changedMeanwhile, new SecretVault([newKey, OLD_KEY], systemRandom), () => {});
    const [stored] = await webhooks.after(undefined, 10);
    if (stored === undefined) throw new Error('there is no webhook');
    expect(stored.webhook.description).toBe('b');
    expect(openSecrets(stored, clock.nowMs(), new SecretVault([newKey], systemRandom))).toEqual([secret]);
  });

  it('that can not be decrypted fail a delivery, which is tried again later, and are logged once', async () => {
    const made = await webhook();
    await makeKey();
    await makeKey();
    const logged = jest.fn();
    const other = new SecretVault([systemRandom.bytes(32)], systemRandom);
    const by = deliverer({ vault: other, log: pino({}, { write: logged }) });
    await deliver(by);
    await deliver(by);
    expect(receiver.received).toEqual([]);
    const attempts = [{ responseStatus: null, fault: 'unreadable_secret' }];
    const failed = { status: 'pending', nextAttemptAtMs: expect.any(Number), attempts };
    expect(await deliveriesOf(made)).toMatchObject([failed, failed]);
    expect(logged).toHaveBeenCalledTimes(1);
    clock.advance(10_000);
    await by.stop();
    await deliver(deliverer());
    expect(receiver.received).toHaveLength(2);
  });

  it('that can not be decrypted are logged again if they could be in between', async () => {
    await webhook();
    const logged = jest.fn();
    const other = new SecretVault([systemRandom.bytes(32)], systemRandom);
    let present = other;
    const changing = {
      seal: vault.seal.bind(vault),
      open: (...sealed: Parameters<typeof vault.open>) => present.open(...sealed),
    };
    const by = deliverer({ vault: changing, log: pino({}, { write: logged }) });
    for (const next of [other, vault, other]) {
      present = next;
      await makeKey();
      await deliver(by);
      // Longer than the pause before the next attempt.
      clock.advance(60_000);
    }
    expect(receiver.received).toHaveLength(2);
    expect(logged).toHaveBeenCalledTimes(2);
  });
});

describe('what was delivered', () => {
  /** Makes events and deliveries older: what is removed is old by the clock of Postgres as well. */
  async function age(days: number): Promise<void> {
    const { db } = store.records;
    await sql`UPDATE events SET at = at - ${days} * interval '1 day'`.execute(db);
    await sql`UPDATE webhook_deliveries SET ended_at = ended_at - ${days} * interval '1 day',
      next_attempt_at = next_attempt_at - ${days} * interval '1 day'`.execute(db);
  }

  it('is removed after 7 days, and what was not considered by a webhook stays', async () => {
    const made = await webhook();
    await makeKey();
    const by = deliverer();
    await deliver(by);
    expect(await deliveriesOf(made)).toHaveLength(1);
    await makeKey();
    await age(8);
    await by.trim();
    expect(await deliveriesOf(made)).toEqual([]);
    await deliver(by);
    expect(receiver.received).toHaveLength(2);
    await by.trim();
    expect(await count('events')).toBe(0);
  });

  it('stays where the clock of a replica is a year ahead of that of Postgres', async () => {
    const made = await webhook();
    await makeKey();
    const by = deliverer();
    await deliver(by);
    const events = await count('events');
    clock.advance(365 * DAY_MS);
    await by.trim();
    expect(await deliveriesOf(made)).toHaveLength(1);
    expect(await count('events')).toBe(events);
  });

  it('is removed page by page, also after an event that a clock which was ahead has dated', async () => {
    await store.records.db.deleteFrom('events').execute();
    await sql`
      INSERT INTO events (sequence, id, type, subject, at, tags, data)
      SELECT number, number::text, 'tollgate.key.updated', '', ${new Date(clock.nowMs())}::timestamptz
        - CASE WHEN number = 1 THEN 0 ELSE 8 END * interval '1 day', '{}', '{}'
      FROM generate_series(1, 10001) AS number`.execute(store.records.db);
    await deliverer().trim();
    expect(await count('events')).toBe(1);
    await store.records.db.deleteFrom('events').execute();
  });

  it('is removed a few deliveries at a time: their bodies may be large', async () => {
    const { webhook: made } = await webhook();
    await makeEnded(made.id, 450);
    // As if more took longer than a statement may.
    const succeed = await failToRemoveMoreThan(200);
    await deliverer().trim().finally(succeed);
    expect(await count('webhook_deliveries')).toBe(0);
  });

  it('is removed although deliveries can not be removed, which the caller hears of', async () => {
    const { webhook: made } = await webhook();
    await makeKey();
    await deliver(deliverer());
    await makeEnded(made.id, 1);
    await age(8);
    const succeed = await failToRemoveMoreThan(0);
    await expect(deliverer().trim().finally(succeed)).rejects.toThrow('as the test wants');
    expect(await count('events')).toBe(0);
    await deliverer().trim();
    expect(await count('webhook_deliveries')).toBe(0);
  });

  it('is removed in turns where there is much: each does some of everything', async () => {
    const { webhook: made } = await webhook();
    await makeKey();
    await deliver(deliverer());
    await makeEnded(made.id, 450);
    await age(8);
    const { trim } = store.records.deliveries;
    // A turn is over as soon as it has begun.
    const turns = jest.spyOn(store.records.deliveries, 'trim').mockImplementation((...turn) => {
      clock.advance(60_000);
      return trim.call(store.records.deliveries, ...turn);
    });
    const by = deliverer();
    expect(await by.trim()).toBe(true);
    const left = [await count('webhook_deliveries'), await count('events')];
    while (await by.trim());
    turns.mockRestore();
    expect(left).toEqual([250, 0]);
    expect(await count('webhook_deliveries')).toBe(0);
  });

  it('is removed with its webhook', async () => {
    const made = await webhook();
    await webhook({ events: ['tollgate.plan.*'] });
    await makeKey();
    const by = deliverer();
    await deliver(by);
    await service.remove(made.webhook.id, change());
    await by.trim();
    expect(await count('webhook_deliveries')).toBe(0);
  });

  it('is removed where its webhook has been disabled for 30 days', async () => {
    const made = await webhook();
    const other = await webhook();
    await makeKey();
    receiver.respond = () => ({ status: 500 });
    const by = deliverer();
    await deliver(by);
    const disabled = { changes: { enabled: false }, principal: ROOT };
    await service.update(made.webhook.id, disabled, change());
    await age(29);
    await by.trim();
    expect(await deliveriesOf(made)).toHaveLength(1);
    await age(2);
    await by.trim();
    expect([await deliveriesOf(made), await deliveriesOf(other)]).toMatchObject([
      [],
      [{ status: 'pending' }],
    ]);
  });

  it('is removed after 30 days where it failed', async () => {
    const made = await webhook();
    await makeKey();
    const by = deliverer();
    await deliver(by);
    await store.records.db
      .updateTable('webhook_deliveries')
      .set({ status: 'failed' })
      .where('webhook_id', '=', made.webhook.id)
      .execute();
    await age(29);
    await by.trim();
    expect(await deliveriesOf(made)).toHaveLength(1);
    await age(2);
    await by.trim();
    expect(await deliveriesOf(made)).toEqual([]);
  });
});
