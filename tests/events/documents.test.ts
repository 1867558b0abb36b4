import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { messagesOf } from '../../src/client/event-stream.ts';
import { EVENT_TYPES, type EventType } from '../../src/events/event-types.ts';
import { TYPES_OF_ACTIONS } from '../../src/events/types-of-actions.ts';
import { ROOT_TOKEN, startManagement, type TestManagement } from '../management/start-management.ts';
import { documentedBlocks } from '../support/documented-commands.ts';
import { EVENT_GUIDE, EVENT_SCHEMAS, eventSchemas, guideWithTypes } from '../support/event-schemas.ts';

describe('docs/events', () => {
  it('has the schema of each type, and no other (npm run event-schemas writes them)', () => {
    const files = readdirSync(EVENT_SCHEMAS);
    expect(files.toSorted()).toEqual([...eventSchemas().keys()].toSorted());
    for (const [file, schema] of eventSchemas()) expect(schemaIn(file)).toEqual(schema);
  });

  it('is what docs/events.md has in its table of types', () => {
    const guide = readFileSync(EVENT_GUIDE, 'utf8');
    expect(guide).toEqual(guideWithTypes(guide));
  });

  it('has its types under `webhooks` of the OpenAPI document as well', () => {
    const { webhooks } = JSON.parse(readFileSync(new URL('../openapi.json', EVENT_SCHEMAS), 'utf8'));
    const files = Object.keys(webhooks).map((type) => `${type}.json`);
    expect(files.toSorted()).toEqual([...eventSchemas().keys()].toSorted());
  });

  it('has schemas that allow the data of the examples in docs/events.md', async () => {
    const blocks = (await documentedBlocks('events.md')).filter(({ language }) => language === 'json');
    const examples = blocks.map(({ text }) => JSON.parse(text));
    const types = ['tollgate.key.updated', 'tollgate.limit.threshold', 'tollgate.usage.hour'];
    expect(examples.map(({ type }) => type)).toEqual(types);
    const ajv = new Ajv2020({ validateFormats: false });
    for (const { type, data } of examples) {
      const validate = ajv.compile(EVENT_TYPES[type as EventType].data);
      expect([type, validate(data), validate.errors]).toEqual([type, true, null]);
    }
  });
});

function schemaIn(file: string): object {
  return JSON.parse(readFileSync(new URL(file, EVENT_SCHEMAS), 'utf8'));
}

describe('the events of the management interface', () => {
  let management: TestManagement;
  beforeAll(async () => {
    management = await startManagement();
  });
  afterAll(() => management.stop());

  /** Makes a change of each kind that the interface has. */
  async function changeEverything(): Promise<void> {
    const made = async (path: string, body: object) =>
      (await management.send('post', path, body).expect(201)).body;
    const post = (path: string, body?: object) => management.send('post', path, body).expect(200);
    const remove = (path: string) => management.send('delete', path).expect(200);
    const { rateLimitId } = await management.createPlan();
    await management.send('patch', `/rate-limit/${rateLimitId}`, { description: 'changed' }).expect(200);
    const { id } = await made('/consumer-api-key/create', { name: 'Grüße', tags: ['eu'], rateLimitId });
    await management.send('patch', `/consumer-api-key/${id}`, { metadata: { deep: [1, null] } }).expect(200);
    await post(`/consumer-api-key/${id}/rotate`, { graceSeconds: 60 });
    await post(`/consumer-api-key/${id}/end-rotation`, { keep: 'new' });
    await post(`/consumer-api-key/${id}/limits/reset`, {});
    await post(`/consumer-api-key/${id}/limits/grant`, { requests: 5 });
    await remove(`/consumer-api-key/${id}`);
    await remove(`/rate-limit/${rateLimitId}`);
    const config = { plans: [{ rateLimitId: 'applied', limit: 10, period: 'hour' }] };
    await post('/tollgate/config/apply', { config, owner: 'documents' });
    const { adminTokenId } = await management.createToken();
    await management.send('patch', `/tollgate/admin-token/${adminTokenId}`, { name: 'changed' }).expect(200);
    await post(`/tollgate/admin-token/${adminTokenId}/rotate`, { graceSeconds: 0 });
    await remove(`/tollgate/admin-token/${adminTokenId}`);
    const webhook = {
      url: 'https://1.1.1.1',
      events: ['tollgate.plan.*'],
      headers: { authorization: 'secret' },
    };
    const { webhookId } = await made('/tollgate/webhook/create', { ...webhook, enabled: false });
    await management.send('patch', `/tollgate/webhook/${webhookId}`, { batch: true }).expect(200);
    await post(`/tollgate/webhook/${webhookId}/rotate`, { graceSeconds: 60 });
    await remove(`/tollgate/webhook/${webhookId}`);
  }

  it('are as the schema of their type says, each kind of change', async () => {
    const url = `http://127.0.0.1:${await management.listen()}/tollgate/events`;
    const { body } = await fetch(url, { headers: { authorization: `Bearer ${ROOT_TOKEN}` } });
    if (body === null) throw new Error('the stream has no body');
    // Read at once: `fetch` cancels a body without a reader.
    const messages = messagesOf(body.pipeThrough(new TextDecoderStream()));
    await changeEverything();
    const seen = new Set<string>();
    const ajv = new Ajv2020({ validateFormats: false });
    for await (const { data } of messages) {
      if (data === '') continue;
      const event = JSON.parse(data);
      const validate = ajv.compile(schemaIn(`${event.type}.json`));
      expect([event.type, validate(event), validate.errors]).toEqual([event.type, true, null]);
      seen.add(event.type);
      if (event.type === 'tollgate.webhook.deleted') break;
    }
    // The gateway itself disables webhooks, and links are used on the public port.
    const ofChanges = new Set(Object.values(TYPES_OF_ACTIONS).filter((type) => type !== null));
    ofChanges.delete('tollgate.webhook.disabled');
    ofChanges.delete('tollgate.key.handed_over');
    expect(seen).toEqual(ofChanges);
  });
});
