import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { findPythonEnvironment } from '../support/python-environment.ts';
import { until } from '../support/until.ts';
import { DocumentedReceiver, withReceiverStage } from './support/documented-receiver.ts';

/** From PyPI. They stay until they are changed here. */
const SDKS = ['standardwebhooks==1.1.0', 'cloudevents==2.2.0'];

const stage = withReceiverStage();
let receiver: DocumentedReceiver | undefined;
afterAll(() => receiver?.stop());

it('the SDKs of Standard Webhooks and CloudEvents in Python take what the gateway sends', async () => {
  const found = await findPythonEnvironment(...SDKS);
  if ('leftOutBecause' in found) {
    process.stderr.write(`The SDKs in Python were left out: ${found.leftOutBecause}.\n`);
    return;
  }
  // The receiver needs the secret, and so the webhook before its address is known.
  const fields = { url: 'http://127.0.0.1:1', events: ['tollgate.key.created'], enabled: false };
  const { body } = await stage.fleet.admin.call('POST', '/tollgate/webhook/create', fields);
  const text = await readFile(resolve(import.meta.dirname, 'support/python-sdks.py'), 'utf8');
  const program = join(found.bin, 'python');
  receiver = await DocumentedReceiver.start(
    stage.directory,
    { file: 'receiver.py', text, program },
    { WEBHOOK_SECRET: body.secret },
  );
  const path = `/tollgate/webhook/${body.webhookId}`;
  await stage.fleet.admin.call('PATCH', path, { url: receiver.url, enabled: true });
  // While a rotation runs, both secrets sign: the receiver still has the previous one.
  await stage.fleet.admin.call('POST', `${path}/rotate`, { graceSeconds: 600 });
  const { id } = await stage.fleet.admin.makeKey('Grüße, 世界');
  await until(() => (receiver?.printed.length ?? 0) > 0);
  const instant = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00`;
  expect(receiver.printed).toEqual([
    expect.stringMatching(new RegExp(`^tollgate\\.key\\.created ${id} ${instant} Grüße, 世界$`)),
  ]);
  expect(await receiver.send('{}')).toBe(401);
});
