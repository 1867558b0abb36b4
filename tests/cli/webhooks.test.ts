import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { withReceiver } from '../events/support/with-receiver.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { until } from '../support/until.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate({ WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' });
const receiver = withReceiver();

describe('tollgate webhooks', () => {
  it('makes a webhook whose secret is shown once, and signs what is sent', async () => {
    const words = ['--event', 'tollgate.key.*', '--only-tag', 'sent', '--description', 'Chat'];
    const made = await stage.tollgate.json('webhooks', 'create', receiver.url, ...words);
    expect(made).toMatchObject({ events: ['tollgate.key.*'], onlyTags: ['sent'], enabled: true });
    expect(await stage.tollgate.text('webhooks', 'list')).not.toContain(made.secret);
    expect(await stage.tollgate.text('webhooks', 'get', 'Chat')).not.toContain(made.secret);
    const { id } = await stage.tollgate.json('keys', 'create', 'told', '--tag', 'sent');
    const [request] = await receiver.received(1);
    expect(new Webhook(made.secret).verify(request?.body ?? '', request?.headers ?? {})).toMatchObject({
      type: 'tollgate.key.created',
      subject: id,
    });
  });

  it('makes the webhook of docs/billing.md with the scopes that the page names', async () => {
    const [command = ''] = await documentedCommands('## The webhook', 'billing.md');
    const file = join(stage.directory, 'billing-secret');
    const words = command.replace('billing-secret', file).trim().split(' ').slice(1);
    const tokenFor = async (...scopes: readonly string[]) => {
      const options = scopes.flatMap((scope) => ['--scope', scope]);
      const { secret } = await stage.tollgate.json('tokens', 'create', 'bills', ...options);
      return { environment: { TOLLGATE_TOKEN: secret as string } };
    };
    const without = await stage.tollgate.run(words, await tokenFor('webhooks:write'));
    expect(without).toMatchObject({ code: 3, stderr: expect.stringContaining('usage:read') });
    const made = await stage.tollgate.run(words, await tokenFor('webhooks:write', 'usage:read'));
    expect(made).toMatchObject({ code: 0 });
    expect(await readFile(file, 'utf8')).toMatch(/^whsec_/);
    const { body } = await stage.admin.call('GET', '/tollgate/webhook');
    const webhook = { events: ['tollgate.usage.hour'], batch: true, description: 'Billing', enabled: true };
    expect(body.webhooks).toContainEqual(expect.objectContaining(webhook));
  });

  it('changes, disables, rotates and deletes a webhook by its description', async () => {
    const words = ['--event', 'tollgate.plan.created', '--description', 'Changed', '--disabled'];
    const { secret, webhookId } = await stage.tollgate.json('webhooks', 'create', receiver.url, ...words);
    const change = ['webhooks', 'update', 'Changed', '--event', 'tollgate.plan.*', '--enable', '--batch'];
    const expected = { webhookId, events: ['tollgate.plan.*'], enabled: true, batch: true };
    expect(await stage.tollgate.json(...change)).toMatchObject(expected);
    const back = ['webhooks', 'update', webhookId, '--no-batch', '--disable'];
    expect(await stage.tollgate.json(...back)).toMatchObject({ batch: false, enabled: false });
    const file = join(stage.directory, 'rotated');
    const rotated = ['webhooks', 'rotate', 'Changed', '--grace', '1h', '--secret-file', file];
    expect(await stage.tollgate.text(...rotated)).not.toContain('whsec_');
    expect(await readFile(file, 'utf8')).toMatch(/^whsec_[A-Za-z0-9+/]+=\n$/);
    expect(await readFile(file, 'utf8')).not.toContain(secret);
    expect((await stage.tollgate.run(['webhooks', 'rotate', 'Changed', '--grace', '1h'])).code).toBe(5);
    const unasked = await stage.tollgate.run(['webhooks', 'delete', 'Changed']);
    expect(unasked).toMatchObject({ code: 64, stderr: expect.stringContaining('--yes') });
    await stage.tollgate.text('webhooks', 'delete', 'Changed', '--yes');
    expect((await stage.tollgate.run(['webhooks', 'show', 'Changed'])).code).toBe(4);
  });

  it.each([['delete', '--yes'], ['rotate', '--grace', '0s', '--yes'], ['update', '--disable'], ['test']])(
    'takes no empty word for the one webhook without a description: %s',
    async (command, ...options) => {
      const event = ['--event', 'tollgate.plan.deleted', '--disabled'];
      const { webhookId } = await stage.tollgate.json('webhooks', 'create', receiver.url, ...event);
      const ended = await stage.tollgate.run(['webhooks', command, '', ...options]);
      expect(ended).toMatchObject({ code: 64, stderr: 'An empty word names no webhook.\n' });
      await stage.tollgate.text('webhooks', 'delete', webhookId, '--yes');
    },
  );

  it('sends a test event, shows how it was delivered, and sends it again', async () => {
    const words = ['--event', 'tollgate.nothing.*', '--event', 'tollgate.plan.deleted'];
    const tested = ['--event', 'tollgate.plan.deleted', '--description', 'Tested'];
    expect((await stage.tollgate.run(['webhooks', 'create', receiver.url, ...words])).code).toBe(64);
    await stage.tollgate.text('webhooks', 'create', receiver.url, ...tested);
    const { deliveryId } = await stage.tollgate.json('webhooks', 'test', 'Tested');
    const isDelivered = async (attempts: number) => {
      const succeeded = ['webhooks', 'deliveries', 'Tested', '--status', 'succeeded'];
      const [delivery] = await stage.tollgate.json(...succeeded);
      return delivery?.deliveryId === deliveryId && delivery.attempts.length === attempts;
    };
    await until(() => isDelivered(1));
    expect(await stage.tollgate.json('webhooks', 'resend', 'Tested', deliveryId)).toMatchObject({
      deliveryId,
    });
    await until(() => isDelivered(2));
    const table = await stage.tollgate.text('webhooks', 'deliveries', 'Tested', '-o', 'table');
    expect(table).toMatch(/^ID +TYPE +STATUS +RESPONSE/);
    const unknown = ['webhooks', 'resend', 'Tested', 'dlv_01KGH3V6ZQ5T8M2N4P6R8S0T2V'];
    expect((await stage.tollgate.run(unknown)).code).toBe(4);
  });

  it('takes headers from a file, and rejects the asterisks that are shown instead', async () => {
    const file = join(stage.directory, 'webhook.yaml');
    await writeFile(
      file,
      `url: ${receiver.url}\nevents: [tollgate.webhook.*]\nheaders: { authorization: Bearer of-the-file }\n`,
    );
    const { webhookId } = await stage.tollgate.json('webhooks', 'create', '-f', file);
    const shown = await stage.tollgate.text('webhooks', 'show', webhookId, '-o', 'yaml');
    expect(shown).not.toContain('of-the-file');
    await writeFile(file, shown);
    const again = await stage.tollgate.run(['webhooks', 'update', webhookId, '-f', file]);
    expect(again).toMatchObject({ code: 64, stderr: expect.stringContaining('asterisks') });
    const cleared = await stage.tollgate.json('webhooks', 'update', webhookId, '--clear', 'headers');
    expect(cleared).toMatchObject({ headers: {} });
    await stage.tollgate.text('webhooks', 'delete', webhookId, '--yes');
  });

  it('updates a webhook from what show prints', async () => {
    const words = ['--event', 'tollgate.webhook.*', '--only-tag', 'eu', '--description', 'Edited', '--batch'];
    const { webhookId } = await stage.tollgate.json('webhooks', 'create', receiver.url, ...words);
    const file = join(stage.directory, 'shown.yaml');
    const shown = await stage.tollgate.text('webhooks', 'show', webhookId, '-o', 'yaml');
    await writeFile(file, shown.replace('Edited', 'Edited again'));
    const updated = await stage.tollgate.json('webhooks', 'update', webhookId, '-f', file);
    expect(updated).toMatchObject({ description: 'Edited again', onlyTags: ['eu'], batch: true });
    const other = ['--event', 'tollgate.webhook.*', '--description', 'Not edited'];
    await stage.tollgate.text('webhooks', 'create', receiver.url, ...other);
    const ofAnother = await stage.tollgate.run(['webhooks', 'update', 'Not edited', '-f', file]);
    expect(ofAnother).toMatchObject({ code: 64, stderr: expect.stringContaining(webhookId) });
    await stage.tollgate.text('webhooks', 'delete', 'Not edited', '--yes');
    await stage.tollgate.text('webhooks', 'delete', webhookId, '--yes');
  });

  it.each([
    [
      'an unknown type',
      ['create', 'https://a.example', '--event', 'tollgate.kee.created'],
      'tollgate.key.created',
    ],
    [
      'an address that is not allowed',
      ['create', 'https://10.0.0.1', '--event', '*'],
      'WEBHOOK_ALLOWED_NETWORKS',
    ],
    ['an unknown field to clear', ['update', 'x', '--clear', 'constructor'], 'takes one of only-tags'],
    ['to enable and disable at once', ['update', 'x', '--enable', '--disable'], 'exclude each other'],
  ])('rejects %s', async (_what, words, rule) => {
    const ended = await stage.tollgate.run(['webhooks', ...words]);
    expect(ended).toMatchObject({ code: 64, stderr: expect.stringContaining(rule) });
  });

  it('names the scope that a token lacks to hear a type', async () => {
    const scopes = ['--scope', 'webhooks:read', '--scope', 'webhooks:write', '--scope', 'keys:read'];
    const { secret } = await stage.tollgate.json('tokens', 'create', 'hears keys', ...scopes);
    const asToken = { environment: { TOLLGATE_TOKEN: secret as string } };
    const create = ['webhooks', 'create', receiver.url, '--event', 'tollgate.webhook.created'];
    const denied = await stage.tollgate.run(create, asToken);
    expect(denied).toMatchObject({ code: 3, stderr: expect.stringContaining('audit:read') });
    const followed = await stage.tollgate.run(['events', '--follow', '--type', 'tollgate.*'], asToken);
    expect(followed).toMatchObject({ code: 3, stdout: '' });
  });
});
