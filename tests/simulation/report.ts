import { lineChart } from '../support/line-chart.ts';
import { type Outcome, POLICIES, simulate } from './simulate.ts';
import type { PolicyName, Scenario } from './world.ts';

const TITLES: Readonly<Record<PolicyName, string>> = {
  home: 'one home region',
  fixed: 'fixed shares',
  borrowing: 'shares with borrowing',
  gossip: 'counts sent every 100 ms',
};
const COLOURS: Readonly<Record<PolicyName, string>> = {
  home: '#d97706',
  fixed: '#9aa5b1',
  borrowing: '#2f81f7',
  gossip: '#2da44e',
};
const NAMES = Object.keys(POLICIES) as readonly PolicyName[];
const SEEDS = [1, 2, 3];
const SKEWS = [1 / 3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

const USUAL: Omit<Scenario, 'demand' | 'skew'> = { limit: 6000, windowMs: 60_000, movesAfter: 1 };
/** Less than the limit, so that each rejection is a wrong one, and more. */
const DEMANDS = [0.9, 1.5] as const;

/** What a plot shows: a figure of an outcome, its title, and the demand with which it is worst. */
const PLOTS = {
  'over-admission': {
    title: 'Allowed beyond the limit, % of it (demand 1.5 × limit)',
    demand: DEMANDS[1],
    of: ({ overAdmitted }: Outcome) => 100 * overAdmitted,
  },
  'wrongly-rejected': {
    title: 'Rejected although there was room, % (demand 0.9 × limit)',
    demand: DEMANDS[0],
    of: ({ wronglyRejected }: Outcome) => 100 * wronglyRejected,
  },
  latency: {
    title: 'p99 of what a decision takes, ms (demand 1.5 × limit)',
    demand: DEMANDS[1],
    of: ({ p99Ms }: Outcome) => p99Ms,
  },
} as const;

/** The plots, by their names, as SVG. */
export function plots(): Readonly<Record<string, string>> {
  const xs = SKEWS.map((skew) => Math.round(100 * skew));
  return Object.fromEntries(
    Object.entries(PLOTS).map(([name, { title, demand, of }]) => {
      const lines = NAMES.map((policy) => {
        const values = SKEWS.map((skew) => of(meanOutcome({ ...USUAL, demand, skew }, policy)));
        const data = values.map((value) => Number(value.toFixed(3)));
        return { name: TITLES[policy], color: COLOURS[policy], data };
      });
      return [name, lineChart({ title, xName: 'requests in the busiest region, %', xs, lines })];
    }),
  );
}

/** The tables, as Markdown. */
export function tables(): string {
  const rows = (scenarios: readonly (readonly [string, Scenario])[]) =>
    scenarios.flatMap(([label, scenario]) =>
      NAMES.map((name) => `| ${label} | ${TITLES[name]} | ${cells(meanOutcome(scenario, name))} |`),
    );
  const usual = { ...USUAL, demand: DEMANDS[0], skew: 0.9 };
  const skews = DEMANDS.flatMap((demand) =>
    [1 / 3, 0.6, 0.9].map(
      (skew) => [`${demand} × limit, ${Math.round(100 * skew)} %`, { ...USUAL, demand, skew }] as const,
    ),
  );
  const limits = [60, 600, 60_000].map((limit) => [`${limit} a minute`, { ...usual, limit }] as const);
  const cut = { region: 2, fromMs: 4 * 60_000, untilMs: 6 * 60_000 };
  return [
    ...table('demand, busiest region', rows(skews)),
    'Other limits, with a demand of 0.9 × limit and 90 % of it in one region:',
    ...table('limit', rows(limits)),
    'Singapore cut off from the others for 2 of the 12 minutes, with a demand of 0.9 × limit and half of it in one region:',
    ...table('network', rows([['cut off', { ...USUAL, demand: 0.9, skew: 0.5, cut }]])),
  ].join('\n');
}

function table(first: string, rows: readonly string[]): readonly string[] {
  return [
    '',
    `| ${first} | regions share the limit by | over-admitted, mean % | worst window % | wrongly rejected % | decision, mean ms | p99 ms |`,
    '|---|---|---|---|---|---|---|',
    ...rows,
    '',
  ];
}

function cells({ overAdmitted, worstOverAdmitted, wronglyRejected, meanMs, p99Ms }: Outcome): string {
  const percent = (share: number) => (100 * share).toFixed(2);
  return [
    ...[overAdmitted, worstOverAdmitted, wronglyRejected].map(percent),
    ...[meanMs, p99Ms].map((ms) => ms.toFixed(1)),
  ].join(' | ');
}

/** Of all seeds. */
function meanOutcome(scenario: Scenario, name: PolicyName): Outcome {
  const outcomes = SEEDS.map((seed) => simulate(scenario, name, seed));
  const mean = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((sum, outcome) => sum + of(outcome), 0) / outcomes.length;
  return {
    requests: mean(({ requests }) => requests),
    overAdmitted: mean(({ overAdmitted }) => overAdmitted),
    worstOverAdmitted: Math.max(...outcomes.map(({ worstOverAdmitted }) => worstOverAdmitted)),
    wronglyRejected: mean(({ wronglyRejected }) => wronglyRejected),
    meanMs: mean(({ meanMs }) => meanMs),
    p99Ms: mean(({ p99Ms }) => p99Ms),
  };
}
