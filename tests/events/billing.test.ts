import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type CloudEvent, HTTP } from 'cloudevents';
import fc from 'fast-check';
import { eventSchema } from '../../src/events/event-schema.ts';
import { documentedBlocks } from '../support/documented-commands.ts';
import { endChild, outputOf } from '../support/end-child.ts';
import {
  DocumentedReceiver,
  documentedProgram,
  programFolder,
  removeFolder,
} from './support/documented-receiver.ts';

const RECEIVER = '## A receiver that counts each request once';
const MAPPING = '## OpenMeter, Lago, Stripe';
const SENDING = '## Send from the ledger';

/** An event of usage with the fields that the mapping reads. */
interface UsageEvent {
  readonly id: string;
  readonly subject: string;
  readonly time: string;
  readonly data: { readonly consumerApiKeyId: string; readonly from: string; readonly units: number };
}

let directory: string;
let receiver: DocumentedReceiver | undefined;
let example: UsageEvent;
beforeAll(async () => {
  directory = await programFolder();
  const [block] = (await documentedBlocks('billing.md')).filter(({ language }) => language === 'json');
  example = JSON.parse(block?.text ?? '');
});
afterEach(() => receiver?.stop());
afterAll(() => removeFolder(directory));

function usageOf(subject: string, from: string, units: number): UsageEvent {
  const id = `usage_${subject}_${from.slice(0, 13)}`;
  return { ...example, id, subject, time: from, data: { ...example.data, from, units } };
}

async function start(ledger: string): Promise<DocumentedReceiver> {
  const text = await documentedProgram('billing.md', RECEIVER, 'js');
  receiver = await DocumentedReceiver.start(directory, { file: 'ledger.mjs', text }, { LEDGER: ledger });
  return receiver;
}

/** What the query of the page says of a ledger: the bill, or what is unsent. */
async function billOf(ledger: string, heading = RECEIVER): Promise<readonly object[]> {
  const database = new DatabaseSync(join(directory, ledger), { readOnly: true });
  const query = await documentedProgram('billing.md', heading, 'sql');
  try {
    return database
      .prepare(query)
      .all()
      .map((row) => ({ ...row }));
  } finally {
    database.close();
  }
}

describe('the event of docs/billing.md', () => {
  it('is one that the schema of its type and CloudEvents allow', () => {
    const validate = new Ajv2020({ validateFormats: false }).compile(eventSchema('tollgate.usage.hour'));
    expect([validate(example), validate.errors]).toEqual([true, null]);
    const headers = { 'content-type': 'application/cloudevents-batch+json' };
    const [event] = HTTP.toEvent({ headers, body: JSON.stringify([example]) }) as CloudEvent<object>[];
    expect(event?.validate()).toBe(true);
    expect(Date.parse(example.time)).toBe(Date.parse(example.data.from));
  });
});

describe('the receiver of docs/billing.md', () => {
  it('counts each event once, single or in batches, sent again and after a kill', async () => {
    const first = await start('sent-again.db');
    const [one, two, three] = [
      usageOf('customer-1', '2026-02-01T00:00:00Z', 10),
      usageOf('customer-1', '2026-02-28T23:00:00Z', 5),
      usageOf('customer-2', '2026-02-03T04:00:00Z', 7),
    ];
    const others = [
      usageOf('customer-1', '2026-01-31T23:00:00Z', 1000),
      usageOf('customer-1', '2026-03-01T00:00:00Z', 1000),
    ];
    for (const webhookId of ['dlv_1', 'dlv_1', 'dlv_2'])
      expect(await first.send(JSON.stringify(one), { webhookId })).toBe(204);
    await first.stop();
    const second = await start('sent-again.db');
    expect(await second.send(JSON.stringify([one, two, ...others]), { webhookId: 'dlv_3' })).toBe(204);
    expect(await second.send(JSON.stringify([two, three, two]), { webhookId: 'dlv_4' })).toBe(204);
    const other = { ...example, id: 'aud_1', type: 'tollgate.key.created' };
    expect(await second.send(JSON.stringify(other), { webhookId: 'dlv_5' })).toBe(204);
    expect(await billOf('sent-again.db')).toEqual([
      { customer: 'customer-1', units: 15 },
      { customer: 'customer-2', units: 7 },
    ]);
  });

  it('counts nothing that is not signed', async () => {
    const started = await start('unsigned.db');
    const { status } = await fetch(started.url, { method: 'POST', body: JSON.stringify(example) });
    expect(status).toBe(401);
    expect(await billOf('unsigned.db')).toEqual([]);
  });

  it('goes on after a client has aborted a request', async () => {
    const started = await start('aborted.db');
    const aborted = await started.begin();
    // The response shows that the receiver reads the other request already.
    expect(await started.send(JSON.stringify(usageOf('one', '2026-02-01T00:00:00Z', 1)))).toBe(204);
    aborted.resetAndDestroy();
    expect(await started.send(JSON.stringify(usageOf('two', '2026-02-01T00:00:00Z', 2)))).toBe(204);
    expect(await billOf('aborted.db')).toEqual([
      { customer: 'one', units: 1 },
      { customer: 'two', units: 2 },
    ]);
  });
});

describe('the mapping of docs/billing.md', () => {
  it('has the id, the customer, the units and the time of every event', async () => {
    await writeFile(join(directory, 'mapping.mjs'), await documentedProgram('billing.md', MAPPING, 'js'));
    const { toLago, toStripe } = await import(join(directory, 'mapping.mjs'));
    const hours = fc.date({ min: new Date('2025-01-01'), max: new Date('2030-01-01'), noInvalidDate: true });
    fc.assert(
      fc.property(hours, fc.nat(), fc.stringMatching(/^[a-z0-9-]{1,30}$/), (at, units, subject) => {
        const from = `${at.toISOString().slice(0, 13)}:00:00Z`;
        const event = usageOf(subject, from, units);
        const seconds = Date.parse(from) / 1000;
        expect(toLago(event, 'api_units').event).toMatchObject({
          ...{ transaction_id: event.id, external_subscription_id: subject, code: 'api_units' },
          ...{ timestamp: seconds, properties: { units } },
        });
        expect(Object.fromEntries(toStripe(event, 'api_units'))).toEqual({
          ...{ event_name: 'api_units', identifier: event.id, timestamp: String(seconds) },
          ...{ 'payload[stripe_customer_id]': subject, 'payload[value]': String(units) },
        });
      }),
    );
  });
});

/** A meter that rejects repetitions in the words of Stripe. */
class Meter {
  readonly units = new Map<string, number>();
  /** Called with each event once it is counted; the default responds. */
  onCounted = (res: ServerResponse): void => void res.writeHead(200).end('{}');
  readonly #server: Server = createServer(async (req, res) => {
    const form = new URLSearchParams(await text(req));
    const id = form.get('identifier') ?? '';
    if (this.units.has(id)) {
      const message = `An event already exists with identifier ${id}.`;
      res.writeHead(400).end(JSON.stringify({ error: { type: 'invalid_request_error', message } }));
      return;
    }
    this.units.set(id, Number(form.get('payload[value]')));
    this.onCounted(res);
  });

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

describe('the program of docs/billing.md that sends from the ledger', () => {
  let meter: Meter;
  let sender: ChildProcess | undefined;
  beforeEach(async () => {
    meter = await new Meter().start();
    await writeFile(join(directory, 'mapping.mjs'), await documentedProgram('billing.md', MAPPING, 'js'));
    await writeFile(join(directory, 'send.mjs'), await documentedProgram('billing.md', SENDING, 'js'));
  });
  afterEach(async () => {
    if (sender !== undefined) await endChild(sender);
    meter.stop();
  });

  function send(ledger: string): ChildProcess {
    const env = { PATH: process.env.PATH ?? '', LEDGER: ledger, METER_URL: meter.url, METER_KEY: 'sk' };
    sender = spawn(process.execPath, ['send.mjs'], { cwd: directory, env });
    return sender;
  }

  /** Resolves with the exit code and what was written. */
  async function sendAll(ledger: string): Promise<readonly [number | null, string]> {
    const child = send(ledger);
    const output = outputOf(child);
    const [code] = await once(child, 'close');
    return [code, output()];
  }

  it('loses no event of a receiver that is killed after its commit, and sends none twice', async () => {
    const events = [usageOf('one', '2026-02-01T00:00:00Z', 10), usageOf('two', '2026-02-01T00:00:00Z', 7)];
    const first = await start('killed.db');
    expect(await first.send(JSON.stringify(events), { webhookId: 'dlv_1' })).toBe(204);
    await first.stop();
    const second = await start('killed.db');
    expect(await second.send(JSON.stringify(events), { webhookId: 'dlv_1' })).toBe(204);
    // The sender is killed, too, before it gets the response to the first of them.
    const counted = Promise.withResolvers<void>();
    meter.onCounted = () => counted.resolve();
    const killed = send('killed.db');
    await counted.promise;
    await endChild(killed);
    meter.onCounted = (res) => void res.writeHead(200).end('{}');
    expect(await sendAll('killed.db')).toEqual([0, '']);
    expect([...meter.units.values()]).toEqual([10, 7]);
    expect(await billOf('killed.db', SENDING)).toEqual([]);
  });

  it('keeps what the meter did not take, and what has no customer', async () => {
    const started = await start('kept.db');
    const ofNoCustomer = usageOf(example.data.consumerApiKeyId, '2026-02-01T00:00:00Z', 1);
    const events = [ofNoCustomer, usageOf('one', '2026-02-01T01:00:00Z', 10)];
    expect(await started.send(JSON.stringify(events))).toBe(204);
    meter.onCounted = (res) => {
      meter.units.clear();
      res.writeHead(503).end('later');
    };
    expect(await sendAll('kept.db')).toEqual([0, expect.stringContaining('503 later')]);
    expect(await billOf('kept.db', SENDING)).toHaveLength(2);
    meter.onCounted = (res) => void res.writeHead(200).end('{}');
    const said = expect.stringContaining(`${ofNoCustomer.id} is of a key without externalId`);
    expect(await sendAll('kept.db')).toEqual([0, said]);
    expect([...meter.units.values()]).toEqual([10]);
    expect(await billOf('kept.db', SENDING)).toMatchObject([{ id: ofNoCustomer.id }]);
  });
});
