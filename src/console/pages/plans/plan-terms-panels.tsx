import { Panel } from '../../components/layout/panel.tsx';
import { SecondLine } from '../../components/layout/second-line.tsx';
import { StatusBadge } from '../../components/text/status-badge.tsx';
import { costWords, patternWords, rateWords } from './limit-words.ts';
import type { Plan } from './plan-types.ts';
import styles from './plans.module.css';
import { WideTable } from './wide-table.tsx';

/** The limits and the costs of a plan, as tables. */
export function PlanTermsPanels({ plan }: { readonly plan: Plan }) {
  const { additionalLimits = [], costs = [] } = plan;
  return (
    <>
      <Panel title="Limits" about="A request needs room in all that apply to it." flush>
        <WideTable
          label="Limits, scrollable"
          name="Limits"
          heads={[
            ['Limit'],
            ['Allows'],
            ['Counted for', styles.wideOnly],
            ['Requests', styles.wideOnly],
            ['Mode'],
          ]}
        >
          {[{ limitId: 'main', limit: plan.limit, period: plan.period }, ...additionalLimits].map((limit) => (
            <LimitRow key={limit.limitId} limit={limit} />
          ))}
        </WideTable>
      </Panel>
      {costs.length > 0 && <CostsPanel costs={costs} />}
    </>
  );
}

function CostsPanel({ costs }: { readonly costs: NonNullable<Plan['costs']> }) {
  return (
    <Panel title="Costs" about="The first that matches a request counts; any other request costs 1." flush>
      <WideTable label="Costs, scrollable" name="Costs" heads={[['Requests'], ['Cost']]}>
        {costs.map((cost, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a cost is known by its place alone
          <tr key={index}>
            <td>
              <code>{patternWords(cost)}</code>
            </td>
            <td>{costWords(cost)}</td>
          </tr>
        ))}
      </WideTable>
    </Panel>
  );
}

function LimitRow({ limit }: { readonly limit: NonNullable<Plan['additionalLimits']>[number] }) {
  const { limitId, per, mode, match = [] } = limit;
  const countedFor = per === 'customer' ? 'each customer of a key' : 'each key';
  return (
    <tr>
      <td>
        {limitId}
        <SecondLine>{[countedFor, ...match.map(patternWords)].join(', ')}</SecondLine>
      </td>
      <td>{rateWords(limit)}</td>
      <td className={styles.wideOnly}>{countedFor}</td>
      <td className={styles.wideOnly}>
        {match.length === 0
          ? 'all'
          : match.map((pattern) => (
              <div key={patternWords(pattern)}>
                <code>{patternWords(pattern)}</code>
              </div>
            ))}
      </td>
      <td>
        {mode === 'shadow' ? (
          <StatusBadge tone="neutral">Shadow</StatusBadge>
        ) : (
          <StatusBadge tone="allowed">Enforced</StatusBadge>
        )}
      </td>
    </tr>
  );
}
