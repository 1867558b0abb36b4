import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type CloudEvent, HTTP } from 'cloudevents';
import fc from 'fast-check';
import { eventSchema } from '../../src/events/event-schema.ts';
import { documentedBlocks } from '../support/documented-commands.ts';
import {
  DocumentedReceiver,
  documentedProgram,
  programFolder,
  removeFolder,
} from './support/documented-receiver.ts';

const RECEIVER = '## A receiver that counts each request once';
const MAPPING = '## OpenMeter, Lago, Stripe';

/** An event of usage with the fields that the mapping reads. */
interface UsageEvent {
  readonly id: string;
  readonly subject: string;
  readonly time: string;
  readonly data: { readonly from: string; readonly units: number };
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

/** What the query of the page says of a ledger. */
async function billOf(ledger: string): Promise<readonly object[]> {
  const database = new DatabaseSync(join(directory, ledger), { readOnly: true });
  const query = await documentedProgram('billing.md', RECEIVER, 'sql');
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
