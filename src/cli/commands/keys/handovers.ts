import { type Command, Option } from 'commander';
import type { components } from '../../../client/management-api.ts';
import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../../api/confirmation.ts';
import { keyIdOf } from '../../api/key-by-name.ts';
import { type PageOptions, paged, pagesOf } from '../../api/pages.ts';
import { showsOnce } from '../../api/secret-file.ts';
import { audited, managed, type Session } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import { seconds } from '../../option-values.ts';
import type { Listing } from '../../output/columns.ts';
import type { Terminal } from '../../terminal.ts';
import type { HandoverLink } from './handover-option.ts';

interface LinkOptions {
  readonly for: number;
  readonly note?: string;
}

const DAY_SECONDS = 86_400;

/** Declares the commands about links that hand the secret of a key over. */
export function declareHandovers(keys: Command, terminal: Terminal): void {
  declareHandover(keys, terminal);

  const list = keys
    .command('handovers')
    .summary('List the hand-over links of a key')
    .description(
      'Lists the hand-over links of a key, newest first, and whether each was used. No list has the links themselves.',
    )
    .argument('<key>', 'id or name')
    .addHelpText('after', '\nExample:\n  tollgate keys handovers "Mobile app"');
  managed<PageOptions>(paged(list), terminal, async ({ client, output }, [key = ''], options) => {
    const keyId = await keyIdOf(client, key);
    await output.list(LINKS, pagesOf(options, output, pageOfLinks(client, keyId)));
  });

  const revoke = keys
    .command('revoke-handover')
    .summary('End a hand-over link')
    .description('Ends a hand-over link that was not used yet: it shows nothing any more.')
    .argument('<key>', 'id or name')
    .argument('<handover>', 'id of the link')
    .addHelpText(
      'after',
      '\nExample:\n  tollgate keys revoke-handover "Mobile app" hnd_01KGH3V6ZQ5T8M2N4P6R8S0T2V --yes',
    );
  managed<ConfirmationOptions>(
    destructive(revoke),
    terminal,
    async (session, [key = '', handoverId = ''], options) => {
      const { client, output } = session;
      const path = { consumerApiKeyId: await keyIdOf(client, key), handoverId };
      if (options.dryRun) await requireRevocable(session, path);
      if (!(await isConfirmed(`The link ${handoverId} shows nothing any more.`, options, session))) return;
      const params = { path };
      const call = client.DELETE('/consumer-api-key/{consumerApiKeyId}/handover/{handoverId}', { params });
      await output.item(REVOKED, await bodyOf(call));
    },
  );
}

function declareHandover(keys: Command, terminal: Terminal): void {
  const handover = keys
    .command('handover')
    .summary('Make a link that shows the secret of a key once')
    .description(
      'Makes a link for the consumer of a key. Its page shows the secret once, on a click. Where secrets are shown only when they are made, use --handover of keys create and keys rotate.',
    )
    .argument('<key>', 'id or name')
    .addOption(
      new Option('--for <time>', 'how long the link works: 1h, 24h, up to 7d')
        .argParser(seconds)
        .default(DAY_SECONDS, '24h'),
    )
    .option('--note <text>', 'what the page of the link says')
    .addHelpText(
      'after',
      '\nExample:\n  tollgate keys handover "Mobile app" --for 48h --note "For the mobile team"',
    );
  managed<LinkOptions>(
    audited(showsOnce(handover)),
    terminal,
    async ({ client, output }, [key = ''], options) => {
      const path = { consumerApiKeyId: await keyIdOf(client, key) };
      const body = { ttlSeconds: options.for, ...(options.note !== undefined && { note: options.note }) };
      const call = client.POST('/consumer-api-key/{consumerApiKeyId}/handover', { params: { path }, body });
      await output.item(LINK, await bodyOf(call));
    },
  );
}

/** For a dry run: rejects what the gateway would reject. */
async function requireRevocable(
  { client, output }: Session,
  { consumerApiKeyId, handoverId }: { readonly consumerApiKeyId: string; readonly handoverId: string },
): Promise<void> {
  for await (const links of pagesOf({ all: true }, output, pageOfLinks(client, consumerApiKeyId))) {
    const found = links.find((link) => link.handoverId === handoverId);
    if (found === undefined) continue;
    if (found.usedAt === null) return;
    throw new CommandFault('fault', `The link ${handoverId} was used already.`);
  }
  throw new CommandFault('notFound', `The key has no link ${handoverId}.`);
}

/** Reads a page of the links of a key. */
function pageOfLinks(client: ManagementClient, consumerApiKeyId: string) {
  return async (query: Pick<PageOptions, 'limit' | 'cursor'>) => {
    const params = { path: { consumerApiKeyId }, query };
    const page = await bodyOf(client.GET('/consumer-api-key/{consumerApiKeyId}/handover', { params }));
    return { items: page.handovers, nextCursor: page.nextCursor };
  };
}

const LINK: Listing<HandoverLink> = {
  columns: [
    { name: 'id', toCell: ({ handoverId }) => handoverId },
    { name: 'link', toCell: ({ url }) => url },
    { name: 'expires', toCell: ({ expiresAt }) => expiresAt },
  ],
  idOf: ({ handoverId }) => handoverId,
};

const LINKS: Listing<components['schemas']['Handover']> = {
  columns: [
    { name: 'id', toCell: ({ handoverId }) => handoverId },
    { name: 'state', toCell: ({ state }) => state },
    { name: 'note', toCell: ({ note }) => note ?? '' },
    { name: 'created', toCell: ({ createdAt }) => createdAt },
    { name: 'expires', toCell: ({ expiresAt }) => expiresAt },
    { name: 'used', toCell: ({ usedAt }) => usedAt ?? '' },
  ],
  idOf: ({ handoverId }) => handoverId,
};

const REVOKED: Listing<{ readonly handoverId: string; readonly message: string }> = {
  columns: [
    { name: 'id', toCell: ({ handoverId }) => handoverId },
    { name: 'result', toCell: ({ message }) => message },
  ],
  idOf: ({ handoverId }) => handoverId,
};
