import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { InvalidConfiguration } from '../../../app/invalid-configuration.ts';
import type { paths } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { ManagementFault } from '../../../client/management-fault.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../../api/confirmation.ts';
import { readObject } from '../../api/read-object.ts';
import { makesSecret, withSecretFile } from '../../api/secret-file.ts';
import { connected, managed, openSession, type Session, type SessionOptions } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Declare } from '../../declare.ts';
import type { Listing } from '../../output/columns.ts';
import { Output } from '../../output/output.ts';
import { shownCell } from '../../output/table.ts';

type DiffBody = paths['/tollgate/config/diff']['post']['requestBody']['content']['application/json'];
type Difference = paths['/tollgate/config/diff']['post']['responses'][200]['content']['application/json'];
type Applied = paths['/tollgate/config/apply']['post']['responses'][200]['content']['application/json'];
type Change = Difference['changes'][number];
type NewSecret = Applied['secrets'][number];

interface OwnerOptions {
  readonly owner: string;
  readonly prune?: boolean;
}

interface ExportOptions {
  readonly owner?: string;
  readonly output?: string;
}

interface ValidateOptions extends SessionOptions {
  readonly gateway?: boolean;
}

interface ApplyOptions extends OwnerOptions, ConfirmationOptions {
  readonly force?: boolean;
  readonly expectDigest?: string;
  readonly secretFile?: string;
}

/** The owner where `--owner` is missing. */
const DEFAULT_OWNER = 'default';

export const declareConfig: Declare = (config, terminal) => {
  config.description(
    'Plans and keys as a configuration: a file in YAML or JSON that is kept in a repository and applied as a whole.',
  );

  const exported = config
    .command('export')
    .summary('Print what there is as a configuration')
    .description(
      'Prints plans and keys as a configuration, without secrets: YAML, or JSON with -o json. Keys without an externalId of their own are left out, and counted.',
    )
    .option('--owner <owner>', 'only what this owner manages')
    .addHelpText('after', '\nExample:\n  tollgate config export > gateway.yaml');
  managed<ExportOptions>(exported, terminal, async ({ client, output }, _words, options) => {
    const { owner, output: format = 'yaml' } = options;
    if (format !== 'yaml' && format !== 'json')
      throw new CommandFault('usage', 'A configuration is exported as yaml or json.');
    const query = owner === undefined ? {} : { owner };
    const call = client.GET('/tollgate/config', { params: { query } });
    const whole = await bodyOf(call);
    await new Output({ output: format, headers: true }, terminal).report(CHANGES, [], whole);
    const leftOut = Number((await call).response.headers.get('tollgate-keys-left-out'));
    if (leftOut > 0) output.note(`Keys that are left out, without an externalId of their own: ${leftOut}.`);
  });

  const validate = config
    .command('validate')
    .summary('Check a configuration')
    .description(
      'Checks a file without a gateway, and lists all faults with their paths. With --gateway it is sent to one as well, which knows whether the plans that it names are there.',
    )
    .argument('<file>', 'YAML or JSON; - for standard input')
    .option('--gateway', 'ask the gateway as well')
    .addHelpText('after', '\nExample:\n  tollgate config validate gateway.yaml');
  connected(validate).action(async (file: string, options: ValidateOptions) => {
    // Read only once: it may be standard input.
    const content = await contentOf(file);
    const counts = await checkedLocally(content);
    if (options.gateway) {
      const { client } = openSession(options, terminal);
      const { parse } = await import('yaml');
      // What has been checked.
      const body: DiffBody = { config: parse(content) as DiffBody['config'], owner: DEFAULT_OWNER };
      await inFile(bodyOf(client.POST('/tollgate/config/diff', { body })));
    }
    terminal.stderr.write(`The configuration is valid (plans: ${counts.plans}, keys: ${counts.keys}).\n`);
  });

  const diff = owned(
    config
      .command('diff')
      .summary('Show what applying a configuration would change')
      .description('Shows what applying a file would change, and ends with 2 where there is something.')
      .argument('<file>', 'YAML or JSON; - for standard input'),
  ).addHelpText(
    'after',
    '\nExample:\n  tollgate config diff gateway.yaml --owner gateway-repository --prune',
  );
  managed<OwnerOptions>(diff, terminal, async ({ client, output }, [file = ''], options) => {
    const body = await bodyFor(file, options);
    const difference = await inFile(bodyOf(client.POST('/tollgate/config/diff', { body })));
    await output.report(CHANGES, difference.changes, difference);
    if (difference.changes.length > 0) throw new CommandFault('differences', summaryOf(difference));
    output.note('There is nothing to change.');
  });

  const apply = owned(
    config
      .command('apply')
      .summary('Apply a configuration')
      .description(
        'Brings plans and keys to the state that a file wants, all or nothing. Shows the secrets of new keys without a secretHash, this once.',
      )
      .argument('<file>', 'YAML or JSON; - for standard input'),
  )
    .option('--force', 'take over what is managed elsewhere, or was changed there')
    .option(
      '--expect-digest <digest>',
      'only if the changes are those that config diff showed with this digest',
    )
    .addHelpText(
      'after',
      `
Examples:
  tollgate config apply gateway.yaml --owner gateway-repository --prune --yes
  tollgate config apply gateway.yaml --yes --secret-file new-secrets.ndjson`,
    );
  managed<ApplyOptions>(
    destructive(makesSecret(apply, 'new secrets, as JSON lines,')),
    terminal,
    (session, [file = ''], options) => applyFile(session, file, options),
  );
};

function owned(command: Command): Command {
  return command
    .option('--owner <owner>', 'whose configuration it is', DEFAULT_OWNER)
    .option('--prune', 'delete what the owner manages and the file does not have');
}

async function applyFile(session: Session, file: string, options: ApplyOptions): Promise<void> {
  const { client, output } = session;
  const { force, secretFile } = options;
  if (output.format === 'id' && secretFile === undefined)
    throw new CommandFault('usage', 'With -o id the secrets of new keys need a --secret-file.');
  const body = await bodyFor(file, options);
  const difference = await inFile(bodyOf(client.POST('/tollgate/config/diff', { body })));
  if (options.dryRun) await output.report(CHANGES, difference.changes, difference);
  if (difference.changes.length > 0 || options.dryRun) {
    if (!options.yes && !options.dryRun) for (const line of linesOf(difference)) output.note(line);
    if (!(await isConfirmed(summaryOf(difference), options, session))) return;
  }
  const expectDigest = options.expectDigest ?? difference.digest;
  const perform = () =>
    inFile(
      bodyOf(
        client.POST('/tollgate/config/apply', { body: { ...body, ...(force && { force }), expectDigest } }),
      ),
    );
  if (secretFile === undefined) return showApplied(session, await perform());
  await withSecretFile(secretFile, async (keep) => {
    const { secrets, ...applied } = await perform();
    if (secrets.length > 0) keep(secrets.map((secret) => `${JSON.stringify(secret)}\n`).join(''));
    await showApplied(session, { ...applied, secrets: [] });
  });
}

async function showApplied({ output }: Session, applied: Applied): Promise<void> {
  await output.report(CHANGES, applied.changes, applied);
  // JSON and YAML have shown them with the rest.
  const isShown = output.format === 'json' || output.format === 'yaml';
  if (applied.secrets.length > 0 && !isShown) await output.report(SECRETS, applied.secrets, applied.secrets);
  output.note(doneOf(applied));
}

async function bodyFor(file: string, { owner, prune }: OwnerOptions): Promise<DiffBody> {
  // The gateway checks it: it may know more than this version of the command.
  return { config: (await readObject(file)) as DiffBody['config'], owner, ...(prune && { prune }) };
}

async function contentOf(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new CommandFault('usage', `${file} can not be read (${code}).`, { cause: error });
  }
}

async function checkedLocally(content: string): Promise<{ readonly plans: number; readonly keys: number }> {
  const { readConfigurationText } = await import('../../../app/configuration-file.ts');
  try {
    const { plans, keys } = readConfigurationText(content);
    return { plans: plans.length, keys: keys.length };
  } catch (error) {
    if (!(error instanceof InvalidConfiguration)) throw error;
    throw new CommandFault('usage', error.message, { cause: error });
  }
}

/** Says faults by their paths in the file, and conflicts one by one. */
async function inFile<Result>(call: Promise<Result>): Promise<Result> {
  return call.catch((error: unknown) => {
    if (!(error instanceof ManagementFault)) throw error;
    const { fields, details, message } = error;
    const conflicts = Array.isArray(details.conflicts) ? details.conflicts : [];
    if (fields.length === 0 && conflicts.length === 0) throw error;
    const lines = [
      ...fields.map(({ field, message: rule }) => shownCell(`  ${field.replace(/^config\./, '')}: ${rule}`)),
      ...conflicts.map(({ type, id, reason }) =>
        shownCell(`  ${type} ${id}: ${String(reason).replaceAll('_', ' ')}`),
      ),
    ];
    const kind = fields.length > 0 ? 'usage' : 'conflict';
    throw new CommandFault(kind, [message, ...lines].join('\n'), { cause: error });
  });
}

function summaryOf({ summary }: Difference): string {
  const { create, update, delete: gone, unchanged } = summary;
  return `${create} to create, ${update} to change, ${gone} to delete, ${unchanged} unchanged.`;
}

function doneOf({ summary, changes }: Applied): string {
  if (changes.length === 0) return 'There was nothing to change.';
  const { create, update, delete: gone, unchanged } = summary;
  return `${create} created, ${update} changed, ${gone} deleted, ${unchanged} unchanged.`;
}

function linesOf({ changes }: Difference): readonly string[] {
  return changes.map((change) =>
    shownCell(`  ${change.action} ${change.type} ${change.id}  ${shownFields(change)}`),
  );
}

function shownFields({ action, fields }: Change): string {
  if (action === 'delete') return '';
  return Object.entries(fields)
    .map(([name, { from, to }]) =>
      action === 'create' ? `${name} ${shown(to)}` : `${name} ${shown(from)} → ${shown(to)}`,
    )
    .join(', ');
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const CHANGES: Listing<Change> = {
  columns: [
    { name: 'action', toCell: ({ action }) => action },
    { name: 'type', toCell: ({ type }) => type },
    { name: 'id', toCell: ({ id }) => id },
    { name: 'conflict', toCell: ({ conflict = '' }) => conflict.replaceAll('_', ' ') },
    { name: 'fields', toCell: shownFields },
  ],
  idOf: ({ id }) => id,
};

const SECRETS: Listing<NewSecret> = {
  columns: [
    { name: 'externalId', toCell: ({ externalId }) => externalId },
    { name: 'key', toCell: ({ consumerApiKeyId }) => consumerApiKeyId },
    { name: 'secret', toCell: ({ secret }) => secret },
  ],
  idOf: ({ consumerApiKeyId }) => consumerApiKeyId,
};
