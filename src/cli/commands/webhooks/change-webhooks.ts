import type { Command } from 'commander';
import type { paths } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../../api/confirmation.ts';
import { fieldsFor } from '../../api/read-object.ts';
import { keepSecret, makesSecret, type SecretFileOptions } from '../../api/secret-file.ts';
import { audited, managed } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import { collect, seconds } from '../../option-values.ts';
import { doneListing } from '../../output/columns.ts';
import { rotatedListing, SECRET_COLUMN } from '../../output/new-secret.ts';
import type { Terminal } from '../../terminal.ts';
import { namedWebhook, webhookIdOf } from './webhook-by-name.ts';
import { type WebhookFieldOptions, webhookFieldOptions, webhookFieldsOf } from './webhook-field-options.ts';
import { WEBHOOKS } from './webhook-listing.ts';

type NewWebhook = paths['/tollgate/webhook/create']['post']['requestBody']['content']['application/json'];

interface CreateOptions extends WebhookFieldOptions, SecretFileOptions {
  readonly disabled?: boolean;
}

interface UpdateOptions extends WebhookFieldOptions {
  readonly to?: string;
  readonly enable?: boolean;
  readonly disable?: boolean;
  readonly clear?: readonly string[];
}

interface RotateOptions extends ConfirmationOptions, SecretFileOptions {
  readonly grace: number;
}

/** Declares the commands that make and change webhooks. */
export function declareWebhookChanges(webhooks: Command, terminal: Terminal): void {
  declareCreate(webhooks, terminal);
  declareUpdate(webhooks, terminal);
  declareDelete(webhooks, terminal);
  declareRotate(webhooks, terminal);
}

function declareCreate(webhooks: Command, terminal: Terminal): void {
  const create = webhookFieldOptions(
    webhooks
      .command('create')
      .summary('Make a webhook')
      .description(
        'Makes a webhook, and shows the secret that its requests are signed with this once. A token can subscribe only to events that it may read.',
      )
      .argument('[url]', 'where events are sent; may be in the file')
      .option('--disabled', 'send nothing until it is enabled'),
  ).addHelpText(
    'after',
    `
Examples:
  tollgate webhooks create https://hooks.example.com/tollgate --event 'tollgate.key.*' --description Chat
  tollgate webhooks create -f billing.yaml --secret-file billing-secret`,
  );
  managed<CreateOptions>(audited(makesSecret(create)), terminal, async (session, [url], options) => {
    const { client, output } = session;
    const { webhookId: _ofAnother, ...fields } = await webhookFieldsOf(options);
    const named = { ...(url !== undefined && { url }), ...(options.disabled && { enabled: false }) };
    // The gateway checks the fields, and names those that are missing or wrong.
    const body = { ...fields, ...named } as NewWebhook;
    const made = await keepSecret(session, options, () =>
      bodyOf(client.POST('/tollgate/webhook/create', { body })),
    );
    await output.item({ ...WEBHOOKS, columns: [SECRET_COLUMN, ...WEBHOOKS.columns] }, made);
  });
}

function declareUpdate(webhooks: Command, terminal: Terminal): void {
  const update = webhookFieldOptions(
    webhooks
      .command('update')
      .summary('Change a webhook')
      .description('Changes what the options name, and leaves the rest. --event replaces all types.')
      .argument('<webhook>', 'id or description')
      .option('--to <url>', 'where events are sent')
      .option('--enable', 'send events again, those from now on')
      .option('--disable', 'send nothing any more; what happens meanwhile is missed'),
  )
    .option('--no-batch', 'send each event of usage in a request')
    .option('--clear <field>', `${Object.keys(CLEARED).join(', ')}; repeated: several`, collect)
    .addHelpText(
      'after',
      `
Examples:
  tollgate webhooks update Chat --event 'tollgate.key.*' --event 'tollgate.plan.*'
  tollgate webhooks update Chat --disable --reason "moves to another server"`,
    );
  managed<UpdateOptions>(audited(update), terminal, async ({ client, output }, [webhook = ''], options) => {
    const { to, enable, disable, clear = [], file } = options;
    if (enable && disable) throw new CommandFault('usage', '--enable and --disable exclude each other.');
    const fields = await webhookFieldsOf(options);
    const cleared = clearedFields(clear);
    const id = await webhookIdOf(client, webhook);
    const body = {
      ...fieldsFor({ idField: 'webhookId', id, file }, fields),
      ...(to !== undefined && { url: to }),
      ...((enable || disable) && { enabled: enable === true }),
      ...cleared,
    };
    const path = { webhookId: id };
    const changed = client.PATCH('/tollgate/webhook/{webhookId}', { params: { path }, body });
    await output.item(WEBHOOKS, await bodyOf(changed));
  });
}

/** The values with which `update --clear` clears fields, by the names that it accepts. */
const CLEARED: Readonly<Record<string, object>> = {
  'only-tags': { onlyTags: [] },
  description: { description: '' },
  headers: { headers: null },
};

function clearedFields(names: readonly string[]): object {
  const unknown = names.find((name) => !Object.hasOwn(CLEARED, name));
  if (unknown !== undefined)
    throw new CommandFault('usage', `--clear takes one of ${Object.keys(CLEARED).join(', ')}.`);
  return Object.assign({}, ...names.map((name) => CLEARED[name]));
}

function declareDelete(webhooks: Command, terminal: Terminal): void {
  const remove = webhooks
    .command('delete')
    .summary('Delete a webhook with its deliveries')
    .description('Deletes a webhook with its deliveries, also those that are pending.')
    .argument('<webhook>', 'id or description')
    .addHelpText('after', '\nExample:\n  tollgate webhooks delete Chat --yes');
  managed<ConfirmationOptions>(destructive(remove), terminal, async (session, [webhook = ''], options) => {
    const { client, output } = session;
    const { id, url } = await namedWebhook(client, webhook);
    const path = { webhookId: id };
    const consequence = `Nothing more is sent to ${url} for ${id}, and its deliveries are deleted, the pending ones too.`;
    if (!(await isConfirmed(consequence, options, session))) return;
    const call = client.DELETE('/tollgate/webhook/{webhookId}', { params: { path } });
    await output.item(doneListing('webhookId'), await bodyOf(call));
  });
}

function declareRotate(webhooks: Command, terminal: Terminal): void {
  const rotate = webhooks
    .command('rotate')
    .summary('Give a webhook a new secret')
    .description(
      'Gives a webhook a new secret, which is shown this once. The previous one signs as well for as long as --grace says.',
    )
    .argument('<webhook>', 'id or description')
    .requiredOption('--grace <time>', 'how long the previous secret signs: 1h, 24h, 7d, or 0s', seconds)
    .addHelpText(
      'after',
      '\nExample:\n  tollgate webhooks rotate Chat --grace 24h --secret-file chat-secret',
    );
  managed<RotateOptions>(
    destructive(makesSecret(rotate)),
    terminal,
    async (session, [webhook = ''], options) => {
      const { client, output } = session;
      const { grace, yes, dryRun } = options;
      const { id, rotation } = await namedWebhook(client, webhook);
      if (dryRun && grace > 0 && rotation !== null)
        throw new CommandFault(
          'conflict',
          `The webhook ${webhook} has two secrets already. Wait until ${rotation.previousValidUntil}, or end both with --grace 0s.`,
        );
      const consequence =
        grace === 0
          ? `Requests of the webhook ${webhook} are signed with a new secret only.`
          : `Requests of the webhook ${webhook} are signed with both secrets for ${grace} s.`;
      // With a grace period the receiver can verify every request: no confirmation is needed.
      const confirmation = { yes: yes === true || grace > 0, dryRun: dryRun === true };
      if (!(await isConfirmed(consequence, confirmation, session))) return;
      const request = { params: { path: { webhookId: id } }, body: { graceSeconds: grace } };
      const rotated = await keepSecret(session, options, () =>
        bodyOf(client.POST('/tollgate/webhook/{webhookId}/rotate', request)),
      );
      await output.item(rotatedListing('webhookId'), rotated);
    },
  );
}
