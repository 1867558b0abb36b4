import type { Command } from 'commander';
import { bodyOf } from '../../../client/management-client.ts';
import { destructive } from '../../api/confirmation.ts';
import { readValue } from '../../api/read-object.ts';
import { makesSecret } from '../../api/secret-file.ts';
import { connected, managed, openSession, type SessionOptions } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Declare } from '../../declare.ts';
import type { Terminal } from '../../terminal.ts';
import { type ApplyOptions, applyFile } from './apply-file.ts';
import { CHANGES, summaryOf } from './differences.ts';
import {
  bodyFor,
  checkedLocally,
  type DiffBody,
  inFile,
  type OwnerOptions,
} from './written-configuration.ts';

interface ExportOptions {
  readonly owner?: string;
  readonly output?: string;
}

interface ValidateOptions extends SessionOptions {
  readonly gateway?: boolean;
}

/** The owner where `--owner` is missing. */
const DEFAULT_OWNER = 'default';

export const declareConfig: Declare = (config, terminal) => {
  config.description(
    'Plans, keys and webhooks as a configuration: a file in YAML or JSON that is kept in a repository and applied as a whole.',
  );

  declareExport(config, terminal);
  declareValidate(config, terminal);
  declareDiff(config, terminal);
  declareApply(config, terminal);
};

function declareExport(config: Command, terminal: Terminal): void {
  const exported = config
    .command('export')
    .summary('Print what there is as a configuration')
    .description(
      'Prints plans, keys and webhooks as a configuration, without secrets: YAML, or JSON with -o json. Keys and webhooks without an externalId of their own are left out, and the keys counted.',
    )
    .option('--owner <owner>', 'only what this owner manages')
    .addHelpText('after', '\nExample:\n  tollgate config export > gateway.yaml');
  managed<ExportOptions>(exported, terminal, async ({ client, output }, _words, options) => {
    const { owner, output: format = 'yaml' } = options;
    if (format !== 'yaml' && format !== 'json')
      throw new CommandFault('usage', 'A configuration is exported as yaml or json.');
    const query = { format, ...(owner !== undefined && { owner }) } as const;
    const call = client.GET('/tollgate/config', { params: { query }, parseAs: 'stream' });
    await output.stream((await bodyOf(call)).pipeThrough(new TextDecoderStream()));
    const leftOut = Number((await call).response.headers.get('tollgate-keys-left-out'));
    if (leftOut > 0) output.note(`Keys that are left out, without an externalId of their own: ${leftOut}.`);
  });
}

function declareValidate(config: Command, terminal: Terminal): void {
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
    // Read only once: the file may be standard input.
    const value = await readValue(file);
    const counts = await checkedLocally(value);
    if (options.gateway) {
      const { client } = await openSession(options, terminal);
      // The value was checked above.
      const body: DiffBody = { config: value as DiffBody['config'], owner: DEFAULT_OWNER };
      await inFile(bodyOf(client.POST('/tollgate/config/diff', { body })));
    }
    terminal.stderr.write(
      `The configuration is valid (plans: ${counts.plans}, keys: ${counts.keys}, webhooks: ${counts.webhooks}).\n`,
    );
  });
}

function declareDiff(config: Command, terminal: Terminal): void {
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
}

function declareApply(config: Command, terminal: Terminal): void {
  const apply = owned(
    config
      .command('apply')
      .summary('Apply a configuration')
      .description(
        'Brings plans, keys and webhooks to the state that a file wants, all or nothing. Shows the secrets of new webhooks, and of new keys without a secretHash, this once.',
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
}

function owned(command: Command): Command {
  return command
    .option('--owner <owner>', 'whose configuration it is', DEFAULT_OWNER)
    .option('--prune', 'delete what the owner manages and the file does not have');
}
