import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../../api/confirmation.ts';
import { managed } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Declare } from '../../declare.ts';
import { doneListing } from '../../output/columns.ts';

interface DeleteOptions extends ConfirmationOptions {
  readonly rebindTo?: string;
}

export const declareDelete: Declare = (plans, terminal) => {
  const remove = plans
    .command('delete')
    .summary('Delete a plan')
    .description('Deletes a plan that no key is bound to, or moves its keys to another one.')
    .argument('<plan>')
    .option('--rebind-to <plan>', 'the plan that its keys are bound to from then on')
    .addHelpText('after', '\nExample:\n  tollgate plans delete gold --rebind-to silver --yes');
  managed<DeleteOptions>(destructive(remove), terminal, async (session, [rateLimitId = ''], options) => {
    const { client, patientClient, output } = session;
    const path = { rateLimitId };
    const { limit, period } = await bodyOf(client.GET('/rate-limit/{rateLimitId}', { params: { path } }));
    const { rebindTo, dryRun } = options;
    if (dryRun) await requireDeletable(client, rateLimitId, rebindTo);
    const moved = rebindTo === undefined ? '' : `, and its keys are bound to ${rebindTo}`;
    const consequence = `The plan ${rateLimitId} (${limit} per ${period}) is deleted${moved}.`;
    const query = rebindTo === undefined ? {} : { rebindTo };
    if (!(await isConfirmed(consequence, options, session))) return;
    const call = patientClient.DELETE('/rate-limit/{rateLimitId}', { params: { path, query } });
    await output.item(doneListing('rateLimitId'), await bodyOf(call));
  });
};

/** The plan of a new installation, which no gateway deletes, also if another one is its default. */
const SHIPPED_PLAN_ID = 'default';

/** For a dry run: rejects what the gateway would reject, as far as its plans show it. */
async function requireDeletable(
  client: ManagementClient,
  rateLimitId: string,
  rebindTo: string | undefined,
): Promise<void> {
  if (rebindTo === rateLimitId)
    throw new CommandFault('usage', '--rebind-to takes another plan than the one that is deleted.');
  const { settings } = await bodyOf(client.GET('/tollgate/whoami'));
  if (rateLimitId === settings.defaultPlanId || rateLimitId === SHIPPED_PLAN_ID)
    throw new CommandFault('conflict', 'The default plan can not be deleted. Change it instead.');
  if (rebindTo !== undefined) {
    const path = { rateLimitId: rebindTo };
    await bodyOf(client.GET('/rate-limit/{rateLimitId}', { params: { path } }));
    return;
  }
  const query = { q: rateLimitId, include: 'keys' } as const;
  const { rateLimits } = await bodyOf(client.GET('/rate-limit', { params: { query } }));
  const found = rateLimits.find((plan) => plan.rateLimitId === rateLimitId);
  const { boundKeys = 0 } = found ?? {};
  if (boundKeys > 0)
    throw new CommandFault(
      'conflict',
      `Keys are bound to the plan ${rateLimitId}: ${boundKeys}. Bind them to another one first, or let --rebind-to do it.`,
    );
}
