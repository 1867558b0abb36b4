import { spawn } from 'node:child_process';
import { afterEach, describe, expect, it } from '@jest/globals';
import { requireProgram } from '../support/debian-package.ts';
import { endChild } from '../support/end-child.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import {
  DocumentedReceiver,
  documentedProgram,
  nowSeconds,
  WEBHOOK_SECRET,
  withReceiverStage,
} from './support/documented-receiver.ts';

const RECEIVERS = [
  {
    language: 'js',
    heading: '### A receiver in JavaScript',
    file: 'receiver.mjs',
    find: async () => process.execPath,
  },
  {
    ...{ language: 'python', heading: '### A receiver in Python', file: 'receiver.py' },
    find: () => requireProgram('python3', 'python3'),
  },
];
const OTHER_SECRET = 'whsec_ZW5vdWdoIGJ5dGVzIGZvciBhbm90aGVyIHNlY3JldA==';
const EVENT = JSON.stringify({ type: 'tollgate.key.created', subject: 'key_1', data: { name: 'Grüße' } });

const stage = withReceiverStage();
let receiver: DocumentedReceiver | undefined;
afterEach(() => receiver?.stop());

describe.each(RECEIVERS)(
  'the receiver of docs/events.md in $language',
  ({ language, heading, file, find }) => {
    async function start(secret = WEBHOOK_SECRET): Promise<DocumentedReceiver> {
      const text = await documentedProgram('events.md', heading, language);
      const options = { file, text, program: await find() };
      receiver = await DocumentedReceiver.start(stage.directory, options, { WEBHOOK_SECRET: secret });
      return receiver;
    }

    it('takes what is signed with its secret, also while a rotation runs, each delivery once', async () => {
      const started = await start();
      expect(await started.send(EVENT)).toBe(204);
      expect(await started.send(EVENT)).toBe(204);
      expect(await started.send(EVENT, { webhookId: 'dlv_2', secrets: [OTHER_SECRET, WEBHOOK_SECRET] })).toBe(
        204,
      );
      await until(() => started.printed.length >= 2);
      expect(started.printed).toEqual(['tollgate.key.created key_1', 'tollgate.key.created key_1']);
    });

    it('rejects another secret, an old timestamp, and a request without a signature', async () => {
      const started = await start();
      expect(await started.send(EVENT, { secrets: [OTHER_SECRET] })).toBe(401);
      for (const timestamp of [nowSeconds() - 600, nowSeconds() + 600])
        expect(await started.send(EVENT, { timestamp })).toBe(401);
      expect((await fetch(started.url, { method: 'POST', body: EVENT })).status).toBe(401);
      expect(started.printed).toEqual([]);
    });

    it('goes on after a client has aborted a request', async () => {
      const started = await start();
      const aborted = await started.begin();
      // The response shows that the receiver reads the other request already.
      expect(await started.send(EVENT)).toBe(204);
      aborted.resetAndDestroy();
      expect(await started.send(EVENT, { webhookId: 'dlv_2' })).toBe(204);
    });

    it('takes what the gateway sends', async () => {
      // The receiver needs the secret, and so the webhook before its address is known.
      const fields = { url: 'http://127.0.0.1:1', events: ['tollgate.key.*'], enabled: false };
      const { body } = await stage.fleet.admin.call('POST', '/tollgate/webhook/create', fields);
      const started = await start(body.secret);
      const changes = { url: started.url, enabled: true };
      await stage.fleet.admin.call('PATCH', `/tollgate/webhook/${body.webhookId}`, changes);
      const { id } = await stage.fleet.admin.makeKey(`for ${language}`);
      await until(() => started.printed.includes(`tollgate.key.created ${id}`));
      await stage.fleet.admin.call('DELETE', `/tollgate/webhook/${body.webhookId}`);
    });
  },
);

it('the command of docs/events.md follows changes of keys and plans, and of nothing else', async () => {
  await requireProgram('curl', 'curl');
  const { fleet } = stage;
  const command = await documentedProgram('events.md', '## The stream', 'sh');
  const environment = { ...process.env, GATEWAY: fleet.replicas[0]?.url, ROOT_TOKEN };
  const curl = spawn('sh', ['-c', `exec ${command}`], {
    env: environment,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let printed = '';
  curl.stdout.on('data', (chunk: Buffer) => {
    printed += chunk;
  });
  try {
    await until(() => printed.startsWith(': open\nid: '));
    const token = { name: 'unheard', scopes: ['read-only'] };
    await fleet.admin.call('POST', '/tollgate/admin-token/create', token);
    await fleet.admin.makePlan('streamed', 5, 'day');
    const { id } = await fleet.admin.makeKey('streamed', 'streamed');
    await until(() => printed.includes(id));
    const types = printed.matchAll(/^data: \{.*"type":"(tollgate\.\w+)/gm);
    expect(new Set([...types].map(([, type]) => type))).toEqual(new Set(['tollgate.plan', 'tollgate.key']));
  } finally {
    await endChild(curl);
  }
});
