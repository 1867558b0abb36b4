import { Argument } from 'commander';
import type { components } from '../../../client/management-api.ts';
import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../../api/confirmation.ts';
import { managed } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Declare } from '../../declare.ts';
import { wholeNumber } from '../../option-values.ts';
import type { Listing } from '../../output/columns.ts';
import { awaitJob } from '../jobs/await-job.ts';
import { JOB } from '../jobs/job-listing.ts';
import {
  actionOptions,
  BULK_ACTIONS,
  type BulkOptions,
  type BulkRequest,
  bulkRequestOf,
} from './bulk-request.ts';
import { filtered } from './key-filter-options.ts';

type DryRun = components['schemas']['BulkDryRun'];

interface BulkCommandOptions extends BulkOptions, ConfirmationOptions {
  readonly expect?: number;
  /** False with `--no-wait`. */
  readonly wait: boolean;
}

/** More keys than this are only counted without `--yes`. */
const MOST_WITHOUT_YES = 100;

export const declareBulkChange: Declare = (keys, terminal) => {
  const command = keys
    .command('bulk')
    .summary('Change or delete many keys')
    .description(
      `Changes all keys that meet the filter, which is that of "keys list", or the keys that are named, as a job of the gateway, and waits for its end. More than ${MOST_WITHOUT_YES} keys are changed only with --yes: without it, this is a dry run. If the number of keys changes before the job begins, nothing is changed, and the exit code is 5.`,
    )
    .addArgument(new Argument('<action>', 'what is done to each key').choices(BULK_ACTIONS))
    .argument('[key...]', 'ids or names, in place of a filter');
  const bulk = actionOptions(filtered(command))
    .option('--expect <count>', 'change nothing unless it is this number of keys', wholeNumber)
    .option('--no-wait', 'end when the job has begun: "jobs show" shows how far it is')
    .addHelpText(
      'after',
      `
A job goes on when the command is interrupted; "jobs cancel" ends it. Exit code 0 where all keys were changed,
3 where the token lost its permission meanwhile, 4 where the keys that were not changed are not there, else 1.

Examples:
  tollgate keys bulk disable --tag trial --dry-run
  tollgate keys bulk set-plan --to-plan gold --plan silver --yes --reason "silver ends"
  tollgate keys bulk add-tags --edit-tag eu --edit-tag paid "Mobile app" CI
  tollgate keys bulk delete --status expired --expect 214 --yes -o json`,
    );
  managed<BulkCommandOptions>(destructive(bulk), terminal, async (session, words, options) => {
    const { client, output, url } = session;
    const request = await bulkRequestOf(client, words, options);
    const counted = await countKeys(client, request, options.expect);
    const isTooMany = counted.total > MOST_WITHOUT_YES && !options.yes;
    if (options.dryRun || isTooMany) {
      await output.item(DRY_RUN, counted);
      const remedy = options.dryRun ? '' : ' With --yes it is done.';
      output.note(`Dry run on ${url}: ${consequenceOf(counted)}${remedy}`);
      return requireAllFound(counted);
    }
    if (!(await isConfirmed(consequenceOf(counted), options, session))) return;
    const job = await begin(client, { ...request, expectCount: counted.total });
    if (options.wait) await awaitJob(job, session);
    else await output.item(JOB, job);
  });
};

async function countKeys(
  client: ManagementClient,
  request: BulkRequest,
  expect: number | undefined,
): Promise<DryRun> {
  const body = { ...request, dryRun: true, ...(expect !== undefined && { expectCount: expect }) };
  const response = await bodyOf(client.POST('/api-keys/bulk', { body }));
  if ('dryRun' in response) return response;
  throw new TypeError('the gateway made a job of a dry run');
}

async function begin(client: ManagementClient, body: BulkRequest) {
  const response = await bodyOf(client.POST('/api-keys/bulk', { body }));
  if ('jobId' in response) return response;
  throw new TypeError('the gateway made a dry run of a job');
}

function consequenceOf({ action, total, notFound }: DryRun): string {
  const missing = notFound === 0 ? '' : ` (${notFound} of them not there)`;
  return `${action} for ${total === 1 ? '1 key' : `${total} keys`}${missing}.`;
}

function requireAllFound({ total, notFound }: DryRun): void {
  if (notFound > 0) throw new CommandFault('notFound', `${notFound} of ${total} keys are not there.`);
}

const DRY_RUN: Listing<DryRun> = {
  columns: [
    { name: 'action', toCell: ({ action }) => action },
    { name: 'keys', toCell: ({ total }) => total },
    { name: 'not found', toCell: ({ notFound }) => notFound },
  ],
  idOf: ({ action }) => action,
};
