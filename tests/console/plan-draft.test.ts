import { describe, expect, it } from '@jest/globals';
import { changedFields } from '../../src/console/api/changed-fields.ts';
import { planDifferences } from '../../src/console/pages/plans/editor/plan-difference.ts';
import { draftOf, EMPTY_PLAN, readDraft, termsOf } from '../../src/console/pages/plans/editor/plan-draft.ts';
import type { Plan } from '../../src/console/pages/plans/plan-types.ts';

const PLAN: Plan = {
  rateLimitId: 'gold',
  description: 'For partners',
  limit: 100,
  period: 'hour',
  createdAt: '2026-02-03T04:05:06Z',
  lastUpdated: '2026-02-03T04:05:06Z',
  additionalLimits: [
    { limitId: 'burst', limit: 10, period: 'second', per: 'key', mode: 'enforce' },
    {
      limitId: 'search',
      limit: 5,
      period: 'hour',
      mode: 'shadow',
      match: [{ methods: ['POST'], path: '/s/**' }],
    },
  ],
  costs: [
    { methods: ['POST'], path: '/batch', cost: 25 },
    { path: '/chat', cost: 'response', reserve: 7 },
  ],
};

describe('the draft of a plan', () => {
  it('says the same as the plan that it was made from', () => {
    const { terms, faults } = readDraft(draftOf(PLAN));
    expect(faults).toEqual({});
    expect(planDifferences(termsOf(PLAN), terms)).toEqual([]);
    expect(changedFields(termsOf(PLAN), terms)).toEqual({});
    expect(terms.costs).toEqual(PLAN.costs);
  });

  it('takes a number with or without separators of thousands, and no other one', () => {
    const limitOf = (limit: string) => {
      const { terms, faults } = readDraft({ ...EMPTY_PLAN, limit });
      return faults.limit === undefined ? terms.limit : 'fault';
    };
    const read = [
      '1000',
      ' 1,000 ',
      '1 000',
      "1'000'000",
      '0',
      '1.5',
      '1,00',
      '-1',
      '1e3',
      '',
      '9'.repeat(16),
    ];
    expect(read.map(limitOf)).toEqual([
      1000,
      1000,
      1000,
      1_000_000,
      'fault',
      'fault',
      'fault',
      'fault',
      'fault',
      'fault',
      'fault',
    ]);
  });

  it('names what is wrong by the paths that the management interface has for them', () => {
    const draft = draftOf(PLAN);
    const [burst, search] = draft.additionalLimits;
    const [cost] = draft.costs;
    if (burst === undefined || search === undefined || cost === undefined)
      throw new Error('the plan has them');
    const { faults } = readDraft({
      ...draft,
      additionalLimits: [
        { ...burst, limitId: ' ' },
        { ...search, match: [{ methods: '', path: '' }] },
      ],
      costs: [{ ...cost, cost: 'ten' }],
    });
    expect(Object.keys(faults)).toEqual([
      'additionalLimits[0].limitId',
      'additionalLimits[1].match[0].path',
      'costs[0].cost',
    ]);
  });

  it('is sent as the fields that differ, and its difference is said line by line', () => {
    const draft = draftOf(PLAN);
    const { terms } = readDraft({ ...draft, description: '', costs: draft.costs.toReversed() });
    expect(Object.keys(changedFields(termsOf(PLAN), terms))).toEqual(['description', 'costs']);
    expect(planDifferences(termsOf(PLAN), terms)).toEqual([
      { what: 'Description', from: 'For partners', to: 'none' },
      { what: 'Cost 1', from: 'POST /batch: 25', to: '/chat: as the backend reports, 7 until then' },
      { what: 'Cost 2', from: '/chat: as the backend reports, 7 until then', to: 'POST /batch: 25' },
    ]);
  });
});
