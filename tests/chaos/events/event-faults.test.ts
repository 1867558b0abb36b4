import { describe, expect, it } from '@jest/globals';
import type { UsageSum } from '../../events/support/usage-oracle.ts';
import { type EventsRecord, eventFaults, type ReceivedRequest } from './event-faults.ts';

const SUM: UsageSum = { requests: 10, successful: 8, rateLimited: 1, bytesIn: 300, bytesOut: 500 };
const HALF: UsageSum = { requests: 5, successful: 4, rateLimited: 0, bytesIn: 150, bytesOut: 250 };
const REST: UsageSum = { requests: 5, successful: 4, rateLimited: 1, bytesIn: 150, bytesOut: 250 };

function changed(id: string, type: string, subject: string) {
  return { id, type, subject, data: {} };
}

function used(id: string, sum: UsageSum, byCustomer: readonly UsageSum[] = [sum]) {
  const data = { consumerApiKeyId: 'key_1', ...sum, byCustomer };
  return { id, type: 'tollgate.usage.hour', subject: 'key_1', data };
}

function accepted(webhookId: string, event: object): ReceivedRequest {
  return { webhookId, body: JSON.stringify(event), isAccepted: true };
}

const CREATED = accepted('dlv_1', changed('aud_1', 'tollgate.key.created', 'key_1'));
const DELETED = accepted('dlv_2', changed('aud_2', 'tollgate.key.deleted', 'key_1'));
const USED = [accepted('dlv_3', used('usage_1', HALF)), accepted('dlv_4', used('usage_2', REST))];
/** All went well: an attempt failed and was made again, another was repeated although it was accepted. */
const GOOD: EventsRecord = {
  acknowledged: [
    { type: 'tollgate.key.created', keyId: 'key_1' },
    { type: 'tollgate.key.deleted', keyId: 'key_1' },
  ],
  audited: new Set(['aud_1', 'aud_2']),
  received: [{ ...CREATED, isAccepted: false }, CREATED, DELETED, DELETED, ...USED],
  usage: new Map([['key_1', SUM]]),
};

/** The faults of the good record with other requests. */
function faultsOf(received: readonly ReceivedRequest[]): readonly string[] {
  return eventFaults({ ...GOOD, received });
}

describe('the judge of events', () => {
  it('finds no fault where attempts are repeated and all else is right', () => {
    expect(eventFaults(GOOD)).toEqual([]);
  });

  it('reports an event that was lost, by the response and by the audit log', () => {
    expect(faultsOf([DELETED, ...USED])).toEqual([
      '1 acknowledged changes without an event: tollgate.key.created of key_1',
      '1 changes in the audit log without an event: aud_1',
    ]);
  });

  it('reports a change that was never acknowledged and has no event', () => {
    const audited = new Set([...GOOD.audited, 'aud_3']);
    expect(eventFaults({ ...GOOD, audited })).toEqual(['1 changes in the audit log without an event: aud_3']);
  });

  it('takes an event that no attempt delivered for lost', () => {
    const received = [CREATED, { ...DELETED, isAccepted: false }, ...USED];
    expect(faultsOf(received)).toHaveLength(2);
  });

  it('reports an acknowledged change that is not in the audit log', () => {
    const acknowledged = [...GOOD.acknowledged, { type: 'tollgate.key.updated', keyId: 'key_1' }];
    expect(eventFaults({ ...GOOD, acknowledged })).toEqual([
      '1 acknowledged changes without an event: tollgate.key.updated of key_1',
    ]);
  });

  it('reports an event without a change', () => {
    const invented = accepted('dlv_9', changed('aud_9', 'tollgate.key.created', 'key_9'));
    expect(faultsOf([...GOOD.received, invented])).toEqual(['1 events without a change: aud_9']);
  });

  it('reports a webhook-id that has another body at a later attempt', () => {
    const other = { ...DELETED, body: DELETED.body.replace('key_1', 'key_2') };
    const expected = ['1 deliveries whose attempts have different bodies: dlv_2'];
    expect(faultsOf([...GOOD.received, other])).toEqual(expected);
    expect(faultsOf([{ ...other, isAccepted: false }, ...GOOD.received])).toEqual(expected);
  });

  it('reports an event under two webhook-ids, and one that is twice in a batch', () => {
    const expected = ['1 events that are in several deliveries, or in one several times: aud_1'];
    expect(faultsOf([...GOOD.received, { ...CREATED, webhookId: 'dlv_9' }])).toEqual(expected);
    const twice = { ...CREATED, body: `[${CREATED.body},${CREATED.body}]` };
    expect(faultsOf([twice, DELETED, ...USED])).toEqual(expected);
  });

  it.each(Object.keys(SUM) as (keyof UsageSum)[])('reports usage in which %s is off by one', (name) => {
    for (const by of [1, -1]) {
      const usage = new Map([['key_1', { ...SUM, [name]: SUM[name] + by }]]);
      expect(eventFaults({ ...GOOD, usage })).toEqual([
        expect.stringMatching(/^1 keys whose events of usage differ from their usage: key_1 /),
      ]);
    }
  });

  it('reports usage of a lost event, of a key without usage, and of a key without an event', () => {
    const [first] = USED;
    expect(faultsOf([CREATED, DELETED, ...(first ? [first] : [])])).toHaveLength(1);
    expect(eventFaults({ ...GOOD, usage: new Map() })).toHaveLength(1);
    expect(eventFaults({ ...GOOD, usage: new Map([...GOOD.usage, ['key_2', SUM]]) })).toHaveLength(1);
  });

  it('reports an event of usage whose customers are off by one', () => {
    const odd = used('usage_2', REST, [{ ...REST, requests: REST.requests - 1 }]);
    expect(faultsOf([CREATED, DELETED, ...USED.slice(0, 1), accepted('dlv_4', odd)])).toEqual([
      expect.stringMatching(/^1 keys .*: key_1 has customers in usage_2 that differ from its sums$/),
    ]);
  });
});
