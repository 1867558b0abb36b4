import type { Command } from 'commander';
import type { paths } from '../../client/management-api.ts';
import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../api/confirmation.ts';
import { keyIdOf } from '../api/key-by-name.ts';
import { audited, managed } from '../api/session.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';
import { wholeNumber } from '../option-values.ts';
import type { Listing } from '../output/columns.ts';
import type { Output } from '../output/output.ts';
import type { Terminal } from '../terminal.ts';

type Counters =
  paths['/consumer-api-key/{consumerApiKeyId}/limits']['get']['responses'][200]['content']['application/json'];

interface WindowOptions {
  readonly limitId?: string;
  readonly customer?: string;
}

export const declareLimits: Declare = (command, terminal) => {
  command.description(
    'The live counters of a key: what is left of each of its limits, at this moment, on all replicas.',
  );

  declareShow(command, terminal);
  declareReset(command, terminal);
  declareGrant(command, terminal);
};

function declareShow(command: Command, terminal: Terminal): void {
  const show = command
    .command('show')
    .summary('Show what is left of each limit of a key')
    .description('Shows what is left of each limit of a key, and when its window ends.')
    .argument('<key>', 'id or name')
    .option('--customer <id>', 'whose windows to show of limits for each customer')
    .addHelpText('after', '\nExample:\n  tollgate limits show "Mobile app" --customer acme');
  managed<WindowOptions>(show, terminal, async ({ client, output }, [key = ''], { customer }) => {
    const path = { consumerApiKeyId: await keyIdOf(client, key) };
    const query = customer === undefined ? {} : { customerId: customer };
    const call = client.GET('/consumer-api-key/{consumerApiKeyId}/limits', { params: { path, query } });
    await write(await bodyOf(call), output);
  });
}

function declareReset(command: Command, terminal: Terminal): void {
  const reset = command
    .command('reset')
    .summary('Close windows of a key, so that the next request opens new ones')
    .description(
      'Closes windows of a key, so that the next request opens new ones; without --customer also those of all customers.',
    )
    .argument('<key>', 'id or name')
    .option('--limit-id <id>', 'only the windows of this limit')
    .option('--customer <id>', 'only the windows of this customer')
    .addHelpText(
      'after',
      '\nExample:\n  tollgate limits reset "Mobile app" --limit-id main --yes --reason "asked for by phone"',
    );
  managed<WindowOptions & ConfirmationOptions>(
    destructive(reset),
    terminal,
    async (session, [key = ''], options) => {
      const { client, output } = session;
      const path = { consumerApiKeyId: await keyIdOf(client, key) };
      if (options.dryRun) await requireLimit(client, path, options);
      const which = options.limitId === undefined ? 'all limits' : `the limit ${options.limitId}`;
      if (!(await isConfirmed(`The counts of ${which} of the key ${key} start at zero.`, options, session)))
        return;
      const body = windowsOf(options);
      const call = client.POST('/consumer-api-key/{consumerApiKeyId}/limits/reset', {
        params: { path },
        body,
      });
      await write(await bodyOf(call), output);
    },
  );
}

/** For a dry run: rejects a key that is not there, and windows that none of its limits has, as the gateway would. */
async function requireLimit(
  client: ManagementClient,
  path: { readonly consumerApiKeyId: string },
  { limitId, customer }: WindowOptions,
): Promise<void> {
  const query = customer === undefined ? {} : { customerId: customer };
  const { limits } = await bodyOf(
    client.GET('/consumer-api-key/{consumerApiKeyId}/limits', { params: { path, query } }),
  );
  const isMeant = (limit: (typeof limits)[number]) =>
    (limitId === undefined || limit.limitId === limitId) &&
    (customer === undefined || limit.per === 'customer');
  if (limits.some(isMeant)) return;
  const which = [limitId, customer === undefined ? undefined : 'for each customer'].filter(Boolean).join(' ');
  const ids = limits.map(({ limitId: id }) => id).join(', ');
  throw new CommandFault(
    'notFound',
    ids === '' ? 'No limit applies to this key.' : `The key has no limit ${which}. It has ${ids}.`,
  );
}

function declareGrant(command: Command, terminal: Terminal): void {
  const grant = command
    .command('grant')
    .summary('Give a key more requests in its present windows')
    .description(
      'Gives a key more requests in its present windows, with which they end. Of limits for each customer it is the window of --customer, or else that of "anonymous".',
    )
    .argument('<key>', 'id or name')
    .argument('<requests>', 'how many more', wholeNumber)
    .option('--limit-id <id>', 'only in the window of this limit')
    .option('--customer <id>', 'in the windows of this customer')
    .addHelpText('after', '\nExample:\n  tollgate limits grant "Mobile app" 500 --reason "launch day"');
  managed<WindowOptions>(
    audited(grant),
    terminal,
    async ({ client, output }, [key = '', requests], options) => {
      const path = { consumerApiKeyId: await keyIdOf(client, key) };
      const body = { ...windowsOf(options), requests: Number(requests) };
      const call = client.POST('/consumer-api-key/{consumerApiKeyId}/limits/grant', {
        params: { path },
        body,
      });
      await write(await bodyOf(call), output);
    },
  );
}

function windowsOf({ limitId, customer }: WindowOptions) {
  return definedFields({ limitId, customerId: customer });
}

async function write(counters: Counters, output: Output): Promise<void> {
  if (counters.degraded) output.note('Redis is unavailable: the counts are not known.');
  await output.report(LIMITS, counters.limits, counters);
}

const LIMITS: Listing<Counters['limits'][number]> = {
  columns: [
    { name: 'limit', toCell: ({ limitId }) => limitId },
    { name: 'allows', toCell: ({ limit }) => limit },
    { name: 'period', toCell: ({ period }) => period },
    { name: 'per', toCell: ({ per }) => per },
    { name: 'mode', toCell: ({ mode }) => mode },
    { name: 'used', toCell: ({ used }) => used },
    { name: 'granted', toCell: ({ granted }) => granted },
    { name: 'remaining', toCell: ({ remaining }) => remaining },
    { name: 'resets', toCell: ({ resetTime }) => resetTime },
  ],
  idOf: ({ limitId }) => limitId,
};
