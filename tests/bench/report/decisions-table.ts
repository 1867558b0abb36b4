import { DECISION_CASES, type DecisionsRound, WAYS, type Way } from '../measure/decisions.ts';
import { median, spreadOf } from '../measure/statistics.ts';
import type { BenchResult } from './bench-result.ts';
import { decimal, factor, table } from './table.ts';

const TITLES: Readonly<Record<Way, string>> = {
  proxied: 'a request that Tollgate proxies',
  asked: 'a decision by `/authorize`',
  'auth-request': 'nginx with `auth_request` to Tollgate',
  'nginx-lua': 'nginx + Lua + Redis',
};

/** What a way is compared with. */
const BESIDE: Readonly<Partial<Record<Way, Way>>> = { asked: 'proxied', 'auth-request': 'nginx-lua' };

/** Decisions for other gateways; undefined when they were not measured. */
export function decisionsTable({ decisions: rounds }: BenchResult): string | undefined {
  if (rounds === undefined) return undefined;
  const rows = DECISION_CASES.flatMap(({ id, title }) =>
    WAYS.map((way, index) => {
      const own = rounds.filter((round) => round.way === way && round.caseId === id);
      const counting = own.filter(({ fault }) => fault === undefined);
      const other = BESIDE[way];
      const beside = rounds.filter(
        (round) => round.way === other && round.caseId === id && round.fault === undefined,
      );
      const middle = (number: Figure) => median(counting.map((round) => round[number]));
      return [
        index === 0 ? title : '',
        TITLES[way],
        decimal(middle('cpuUs')),
        decimal(middle('p50Ms'), 3),
        decimal(middle('p99Ms'), 2),
        ...FIGURES.map((number) => (other === undefined ? '1' : ratio(counting, beside, number))),
        String(own.length - counting.length),
      ];
    }),
  );
  const heads = ['case', 'way', 'CPU µs', 'p50 ms', 'p99 ms', 'CPU ×', 'p50 ×', 'p99 ×', 'void'];
  return `Decisions for other gateways. The factors of a decision are beside a proxied request, those of nginx with \`auth_request\`, whose CPU includes Tollgate's, beside nginx + Lua + Redis:

${table(heads, rows)}`;
}

const FIGURES = ['cpuUs', 'p50Ms', 'p99Ms'] as const;
type Figure = (typeof FIGURES)[number];

function ratio(rounds: readonly DecisionsRound[], beside: readonly DecisionsRound[], number: Figure): string {
  const ratios = rounds.flatMap((one) => {
    const other = beside.find(({ round }) => round === one.round);
    return other === undefined ? [] : [one[number] / other[number]];
  });
  return factor(spreadOf(ratios));
}
