import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { Admin } from '../support/admin.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
let receiver: Server;
const received: { readonly headers: Record<string, string>; readonly body: string }[] = [];
beforeAll(async () => {
  fleet = await startInProcessFleet(2, {
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    EVENTS_SOURCE: '/the-fleet',
  });
  receiver = createServer((req, res) => {
    let body = '';
    req.on('data', (chunk: Buffer) => {
      body += chunk;
    });
    req.on('end', () => {
      received.push({ headers: req.headers as Record<string, string>, body });
      res.writeHead(204).end();
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
});
afterAll(async () => {
  await fleet?.stop();
  receiver?.close();
});

const subjects = () => received.map(({ body }) => JSON.parse(body).subject);

describe('replicas', () => {
  it('send the events of all of them once, and go on when the one that sends stops', async () => {
    const [first, second] = fleet.replicas;
    if (first === undefined || second === undefined) throw new Error('there are two replicas');
    const [one, two] = [new Admin(first.url), new Admin(second.url)];
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/in`;
    const fields = { url, events: ['tollgate.key.created'] };
    const idempotent = { 'idempotency-key': 'the-webhook' };
    const { status, body } = await one.call('POST', '/tollgate/webhook/create', fields, idempotent);
    expect(status).toBe(201);
    const keys = [await two.makeKey('made by the second'), await one.makeKey('made by the first')];
    await until(async () => received.length === 2);
    // Both may be sent at once.
    expect(subjects().toSorted()).toEqual(keys.map(({ id }) => id).toSorted());
    for (const { headers, body: sent } of received)
      expect(new Webhook(body.secret).verify(sent, headers)).toMatchObject({ source: '/the-fleet' });

    // The second replica learns of the webhook, and of who sends.
    await two.call('PATCH', `/tollgate/webhook/${body.webhookId}`, { description: 'known' });
    const stream = await fetch(`${first.url}/tollgate/events`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
    await first.stop();
    // The stream ended with the replica, and did not hold up its stop.
    expect(await stream.text()).toContain(': open');
    const last = await two.makeKey('made after the stop');
    await until(async () => received.length === 3);
    expect(subjects().at(-1)).toBe(last.id);
  });
});
