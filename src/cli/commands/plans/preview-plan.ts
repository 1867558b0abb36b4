import type { paths } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { managed } from '../../api/session.ts';
import type { Declare } from '../../declare.ts';
import type { Listing } from '../../output/columns.ts';
import { type PlanOptions, planOptions, termsFor } from './plan-options.ts';

type Operation = paths['/rate-limit/{rateLimitId}/preview']['post'];
type Draft = Operation['requestBody']['content']['application/json'];
type Preview = Operation['responses'][200]['content']['application/json'];
type Limit = Preview['limits'][number];

export const declarePreview: Declare = (plans, terminal) => {
  const preview = planOptions(
    plans
      .command('preview')
      .summary('Show what a change of a plan would have limited')
      .description(
        'Compares a change with the last 28 days of the keys under the plan, and lists those that would have been limited most. Changes nothing.',
      )
      .argument('<plan>'),
  ).addHelpText(
    'after',
    '\nExamples:\n  tollgate plans preview gold --limit 500\n  tollgate plans preview gold -f gold.yaml -o json',
  );
  managed<PlanOptions>(preview, terminal, async ({ client, output }, [rateLimitId = ''], options) => {
    const body = (await termsFor(rateLimitId, options)) as Draft;
    const path = { rateLimitId };
    const found = await bodyOf(client.POST('/rate-limit/{rateLimitId}/preview', { params: { path }, body }));
    await output.report(WORST, found.worst, found);
    for (const sentence of sentencesOf(found)) output.note(sentence);
  });
};

function sentencesOf(preview: Preview): readonly string[] {
  const { keys, keysWereLimited, keysWouldBeLimited, requests, wasLimited, wouldBeLimited } = preview;
  return [
    `Of ${requests} requests since ${preview.from}, ${wouldBeLimited} would have been limited; ${wasLimited} were.`,
    `Of ${keys} keys, ${keysWouldBeLimited} would have been limited; ${keysWereLimited} were.`,
    ...preview.limits.flatMap(caveatOf),
    ...(preview.costsIgnored ? ['Each request counts as 1: usage by hour does not have the costs.'] : []),
  ];
}

function caveatOf({ limitId, limit, period, quality }: Limit): readonly string[] {
  const named = `The limit ${limitId} (${limit} per ${period})`;
  const shadow = 'A limit in shadow mode counts what it would reject.';
  switch (quality) {
    case 'hours':
      return [];
    case 'at-least':
      return [`${named} would have limited more than usage by hour shows. ${shadow}`];
    case 'unknown':
      return [`${named} is left out: usage by hour does not say which requests it applies to. ${shadow}`];
  }
}

const WORST: Listing<Preview['worst'][number]> = {
  columns: [
    { name: 'name', toCell: ({ name }) => name },
    { name: 'id', toCell: ({ consumerApiKeyId }) => consumerApiKeyId },
    { name: 'requests', toCell: ({ requests }) => requests },
    { name: 'wasLimited', heading: 'was limited', toCell: ({ wasLimited }) => wasLimited },
    { name: 'wouldBeLimited', heading: 'would be limited', toCell: ({ wouldBeLimited }) => wouldBeLimited },
  ],
  idOf: ({ consumerApiKeyId }) => consumerApiKeyId,
};
