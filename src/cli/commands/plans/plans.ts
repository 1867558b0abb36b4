import type { Command } from 'commander';
import type { paths } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { keyIdOf } from '../../api/key-by-name.ts';
import { type PageOptions, paged, pagesOf } from '../../api/pages.ts';
import { audited, managed } from '../../api/session.ts';
import type { Declare } from '../../declare.ts';
import type { Listing } from '../../output/columns.ts';
import { shownCell } from '../../output/table.ts';
import type { Terminal } from '../../terminal.ts';
import { declareDelete } from './delete-plan.ts';
import { fieldsOf, type PlanOptions, planOptions, termsFor } from './plan-options.ts';
import { declarePreview } from './preview-plan.ts';

type Plan = paths['/rate-limit/{rateLimitId}']['get']['responses'][200]['content']['application/json'];
type NewPlan = paths['/rate-limit/create']['post']['requestBody']['content']['application/json'];
type PlanChange = paths['/rate-limit/{rateLimitId}']['patch']['requestBody']['content']['application/json'];

export const declarePlans: Declare = (plans, terminal) => {
  plans.description('Rate limit plans. A <plan> is named by its id.');

  declareList(plans, terminal);
  declareShow(plans, terminal);
  declareCreate(plans, terminal);
  declareUpdate(plans, terminal);
  declarePreview(plans, terminal);
  declareApply(plans, terminal);
  declareDelete(plans, terminal);
};

function declareList(plans: Command, terminal: Terminal): void {
  const list = plans
    .command('list')
    .summary('List plans')
    .description('Lists plans, by id.')
    .addHelpText('after', '\nExample:\n  tollgate plans list --all -o csv > plans.csv');
  managed<PageOptions>(paged(list), terminal, async ({ client, output }, _words, options) => {
    const pages = pagesOf(options, output, async (query) => {
      const { rateLimits, nextCursor } = await bodyOf(client.GET('/rate-limit', { params: { query } }));
      return { items: rateLimits, nextCursor };
    });
    await output.list(PLANS, pages);
  });
}

function declareShow(plans: Command, terminal: Terminal): void {
  const show = plans
    .command('show')
    .summary('Show a plan')
    .description('Shows a plan; in JSON and YAML with all of its limits and costs.')
    .argument('<plan>')
    .addHelpText('after', '\nExample:\n  tollgate plans show gold -o yaml > gold.yaml');
  managed(show, terminal, async ({ client, output }, [rateLimitId = '']) => {
    const path = { rateLimitId };
    await output.item(PLANS, await bodyOf(client.GET('/rate-limit/{rateLimitId}', { params: { path } })));
  });
}

function declareCreate(plans: Command, terminal: Terminal): void {
  const create = planOptions(
    plans
      .command('create')
      .summary('Make a plan')
      .description('Makes a plan, from options or from a file.')
      .argument('<plan>', 'id of the new plan'),
  ).addHelpText(
    'after',
    '\nExamples:\n  tollgate plans create gold --limit 1000 --period hour --description "For partners"\n  tollgate plans create gold -f gold.yaml',
  );
  managed<PlanOptions>(audited(create), terminal, async ({ client, output }, [rateLimitId = ''], options) => {
    // The gateway checks the fields, and names those that are missing or wrong.
    const body = { description: '', ...(await fieldsOf(options)), rateLimitId } as NewPlan;
    const made = await bodyOf(client.POST('/rate-limit/create', { body }));
    await output.item(PLANS, { ...made, lastUpdated: made.createdAt });
  });
}

function declareUpdate(plans: Command, terminal: Terminal): void {
  const update = planOptions(
    plans
      .command('update')
      .summary('Change a plan')
      .description(
        'Changes what the options name, and leaves the rest. It holds with the next request of every key that is bound to the plan.',
      )
      .argument('<plan>'),
  ).addHelpText(
    'after',
    '\nExample:\n  tollgate plans update gold --limit 2000 --reason "asked for by sales"',
  );
  managed<PlanOptions>(audited(update), terminal, async ({ client, output }, [rateLimitId = ''], options) => {
    const body = (await termsFor(rateLimitId, options)) as PlanChange;
    const path = { rateLimitId };
    const call = client.PATCH('/rate-limit/{rateLimitId}', { params: { path }, body });
    await output.item(PLANS, await bodyOf(call));
  });
}

function declareApply(plans: Command, terminal: Terminal): void {
  const apply = plans
    .command('apply')
    .summary('Bind a plan to keys')
    .description('Binds a plan to keys, one after the other. It holds with their next request.')
    .argument('<plan>')
    .argument('<key...>', 'ids or names')
    .addHelpText('after', '\nExample:\n  tollgate plans apply gold "Mobile app" "Web app"');
  managed(audited(apply), terminal, async ({ client, output }, [rateLimitId = '', ...keys]) => {
    // A name that no key has, or several have, must not stop the command half-way.
    const ids: string[] = [];
    for (const key of keys) ids.push(await keyIdOf(client, key));
    const bindings: Binding[] = [];
    for (const consumerApiKeyId of ids) {
      const body = { rateLimitId, consumerApiKeyId };
      const binding = await bodyOf(client.POST('/api-keys/apply-rate-limit', { body })).catch((error) => {
        const done = keys.slice(0, bindings.length).map(shownCell).join(', ');
        if (done !== '')
          output.note(`The plan ${rateLimitId} was bound to ${done}. The next request failed:`);
        throw error;
      });
      bindings.push(binding);
    }
    await output.report(BINDINGS, bindings, bindings);
  });
}

const PLANS: Listing<Plan> = {
  columns: [
    { name: 'id', toCell: ({ rateLimitId }) => rateLimitId },
    { name: 'limit', toCell: ({ limit }) => limit },
    { name: 'period', toCell: ({ period }) => period },
    {
      name: 'more limits',
      toCell: ({ additionalLimits = [] }) => additionalLimits.map(({ limitId }) => limitId).join(' '),
    },
    { name: 'description', toCell: ({ description }) => description },
    { name: 'updated', toCell: ({ lastUpdated }) => lastUpdated },
  ],
  idOf: ({ rateLimitId }) => rateLimitId,
};

type Binding = paths['/api-keys/apply-rate-limit']['post']['responses'][200]['content']['application/json'];

const BINDINGS: Listing<Binding> = {
  columns: [
    { name: 'key', toCell: ({ consumerApiKeyId }) => consumerApiKeyId },
    { name: 'plan', toCell: ({ rateLimitId }) => rateLimitId },
    { name: 'limit', toCell: ({ limit }) => limit },
    { name: 'period', toCell: ({ period }) => period },
  ],
  idOf: ({ consumerApiKeyId }) => consumerApiKeyId,
};
