import { type Command, Option } from 'commander';
import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { definedFields } from '../../../platform/defined-fields.ts';
import { keyIdOf } from '../../api/key-by-name.ts';
import { type PageOptions, paged, pagesOf } from '../../api/pages.ts';
import { managed } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Terminal } from '../../terminal.ts';
import { type UsageOptions, usageOptions, writeUsage } from '../usage-listing.ts';
import { filtered, type KeyFilterOptions, keyFilterOf } from './key-filter-options.ts';
import { KEY_DETAIL, KEYS } from './key-listing.ts';

interface ListOptions extends PageOptions, KeyFilterOptions {
  readonly sort?: 'createdAt' | 'name' | 'lastUsedAt' | 'expiresAt';
  readonly order?: 'asc' | 'desc';
}

/** Declares the commands that read keys. */
export function declareKeyReads(keys: Command, terminal: Terminal): void {
  declareList(keys, terminal);
  declareShow(keys, terminal);
  declareUsage(keys, terminal);
}

function declareList(keys: Command, terminal: Terminal): void {
  const list = filtered(keys.command('list').summary('List keys').description('Lists keys, newest first.'))
    .addOption(
      new Option('--sort <field>', 'by what').choices(['createdAt', 'name', 'lastUsedAt', 'expiresAt']),
    )
    .addOption(new Option('--order <order>', 'in which direction').choices(['asc', 'desc']))
    .addHelpText(
      'after',
      `
Examples:
  tollgate keys list --tag eu --tag paid
  tollgate keys list --all -o csv > keys.csv
  tollgate keys list --status expiring --all -o id`,
    );
  managed<ListOptions>(paged(list), terminal, async ({ client, output }, _words, options) => {
    const { sort, order } = options;
    const filter = keyFilterOf(options);
    const pages = pagesOf(options, output, async (page) => {
      const query = { ...page, ...filter, ...definedFields({ sort, order }) };
      const { apiKeys, nextCursor } = await bodyOf(client.GET('/consumer-api-key', { params: { query } }));
      return { items: apiKeys, nextCursor };
    });
    await output.list(KEYS, pages);
  });
}

function declareShow(keys: Command, terminal: Terminal): void {
  const show = keys
    .command('show')
    .summary('Show a key with its usage')
    .description(
      'Shows a key with its usage. Its secret only with --reveal, so that it is in no log by accident. With --reveal the exit code is 3 where the token lacks the scope keys:secret, and 1 where the gateway does not show the secret of this key.',
    )
    .argument('<key>', 'id or name')
    .option('--reveal', 'show the secret, too')
    .addHelpText(
      'after',
      `
Examples:
  tollgate keys show "Mobile app"
  tollgate keys show "Mobile app" --reveal -o json | jq -r .secret`,
    );
  managed<{ readonly reveal?: boolean }>(
    show,
    terminal,
    async ({ client, output }, [key = ''], { reveal = false }) => {
      const path = { consumerApiKeyId: await keyIdOf(client, key) };
      // A secret that the gateway sends has an entry in the audit log, shown or not.
      const query = { reveal: reveal ? 'true' : 'false' } as const;
      const { secret, ...detail } = await bodyOf(
        client.GET('/consumer-api-key/{consumerApiKeyId}', { params: { path, query } }),
      );
      if (reveal && MASKED.test(secret)) throw await notShown(client);
      await output.item(KEY_DETAIL, reveal ? { ...detail, secret } : detail);
    },
  );
}

/** What the gateway sends instead of a secret that it does not show. */
const MASKED = /^[^*]*_\*{20,}$/;

/** Why the gateway did not show a secret. Asterisks on standard output would be taken for the secret. */
async function notShown(client: ManagementClient): Promise<CommandFault> {
  const { scopes, settings } = await bodyOf(client.GET('/tollgate/whoami'));
  if (!scopes.includes('keys:secret'))
    return new CommandFault(
      'credentials',
      'The secret is not shown: this needs a token with the scope keys:secret.',
    );
  return new CommandFault(
    'fault',
    settings.secretReveal === 'once'
      ? 'The secret is not shown: with SECRET_REVEAL=once the gateway shows it only when it is made.'
      : 'The secret is not shown: the gateway has only its digest (it was imported as a hash, or made with SECRET_REVEAL=once), or can not write the audit log.',
  );
}

function declareUsage(keys: Command, terminal: Terminal): void {
  const usage = usageOptions(
    keys
      .command('usage')
      .summary('Usage of a key over time')
      .description('Shows the requests of a key over time: the last 24 hours where nothing else is said.')
      .argument('<key>', 'id or name'),
  ).addHelpText('after', '\nExample:\n  tollgate keys usage "Mobile app" --from 7d --interval day');
  managed<UsageOptions>(usage, terminal, async ({ client, output }, [key = ''], options) => {
    const path = { consumerApiKeyId: await keyIdOf(client, key) };
    await writeUsage(options, output, (query) =>
      bodyOf(client.GET('/consumer-api-key/{consumerApiKeyId}/usage', { params: { path, query } })),
    );
  });
}
