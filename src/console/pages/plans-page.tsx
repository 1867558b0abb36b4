import { Gauge, Plus } from 'lucide-react';
import { Link, useSearchParams } from 'wouter';
import { useApi, useScopes } from '../api/api-context.tsx';
import { useLivePages } from '../api/live-pages.ts';
import { Button, ButtonLink } from '../components/forms/button.tsx';
import { Input } from '../components/forms/field.tsx';
import { focusFilters } from '../components/forms/focus-filters.ts';
import { type Column, DataTable } from '../components/layout/data-table.tsx';
import { PageHeader } from '../components/layout/page-header.tsx';
import { EmptyState } from '../components/states/empty-state.tsx';
import { PageLink } from '../components/text/page-link.tsx';
import { RelativeTime } from '../components/text/relative-time.tsx';
import { StatusBadge } from '../components/text/status-badge.tsx';
import { counted } from '../format/numbers.ts';
import { CreatePlan } from './plans/editor/create-plan.tsx';
import { planWords } from './plans/limit-words.ts';
import type { ListedPlan } from './plans/plan-types.ts';
import styles from './plans/plans.module.css';

/** All plans, with their limits and the number of their keys. */
export function PlansPage() {
  const [params] = useSearchParams();
  const { can } = useScopes();
  return params.has('create') && can('plans:write') ? <CreatePlan /> : <PlanList />;
}

function PlanList() {
  const { can } = useScopes();
  const { whoami } = useApi();
  const [params, setParams] = useSearchParams();
  const q = params.get('q') ?? '';
  const plans = usePlans(q);
  const search = (text: string) => setParams(text === '' ? {} : { q: text }, { replace: true });
  const clear = () => {
    search('');
    focusFilters();
  };
  return (
    <>
      <PageHeader
        title="Plans"
        about="What keys may do: limits, costs, and whom they hold for."
        actions={
          can('plans:write') && (
            <ButtonLink look="primary" href="/plans?create">
              <Plus aria-hidden="true" />
              Create plan
            </ButtonLink>
          )
        }
      />
      <search className={styles.filters}>
        <Input
          type="search"
          aria-label="Search plans"
          placeholder="Search by id or description"
          value={q}
          onChange={(event) => search(event.target.value)}
        />
        {plans.total !== undefined && <span className={styles.count}>{counted(plans.total, 'plan')}</span>}
      </search>
      <DataTable
        label="plans"
        live={plans}
        columns={columnsFor(whoami.settings.defaultPlanId)}
        rowId={({ rateLimitId }) => rateLimitId}
        rowHref={({ rateLimitId }) => `/plans/${encodeURIComponent(rateLimitId)}`}
        pages={plans}
        total={plans.total}
        empty={q === '' ? <NoPlans /> : <NoMatch q={q} onClear={clear} />}
      />
    </>
  );
}

function usePlans(q: string) {
  return useLivePages(
    ['plans', 'list', q],
    (client, query, signal) =>
      client.GET('/rate-limit', {
        params: { query: { count: 'true', include: 'keys', ...(q !== '' && { q }), ...query } },
        signal,
      }),
    {
      page: ({ rateLimits, total, nextCursor }) => ({ rows: rateLimits, total, nextCursor }),
      scope: 'plans:read',
    },
  );
}

function NoPlans() {
  const { can } = useScopes();
  return (
    <EmptyState
      icon={Gauge}
      title="No plans yet"
      action={can('plans:write') && <ButtonLink href="/plans?create">Create the first plan</ButtonLink>}
    >
      A plan says how many requests a key may make, and in which time.
    </EmptyState>
  );
}

function NoMatch({ q, onClear }: { readonly q: string; readonly onClear: () => void }) {
  return (
    <EmptyState title="No plan matches" action={<Button onClick={onClear}>Clear the search</Button>}>
      Nothing has <q>{q}</q> in its id or description.
    </EmptyState>
  );
}

function columnsFor(defaultPlanId: string | null): readonly Column<ListedPlan>[] {
  return [
    {
      id: 'plan',
      header: 'Plan',
      sortBy: ({ rateLimitId }) => rateLimitId,
      cell: ({ rateLimitId }) => (
        <>
          <Link href={`/plans/${encodeURIComponent(rateLimitId)}`}>{rateLimitId}</Link>
          {rateLimitId === defaultPlanId && (
            <>
              {' '}
              <StatusBadge tone="accent">Default</StatusBadge>
            </>
          )}
        </>
      ),
    },
    { id: 'limits', header: 'Allows', cell: (plan) => <PlanLimits plan={plan} /> },
    {
      id: 'description',
      header: 'Description',
      wideOnly: true,
      cell: ({ description }) => <bdi className={styles.description}>{description}</bdi>,
    },
    {
      id: 'keys',
      header: 'Keys',
      align: 'end',
      sortBy: ({ boundKeys }) => boundKeys,
      cell: ({ rateLimitId, boundKeys = 0 }) => (
        <PageLink scope="keys:read" href={`/keys?rateLimitId=${encodeURIComponent(rateLimitId)}`}>
          {counted(boundKeys, 'key')}
        </PageLink>
      ),
    },
    {
      id: 'changed',
      header: 'Changed',
      wideOnly: true,
      sortBy: ({ lastUpdated }) => Date.parse(lastUpdated),
      cell: ({ lastUpdated }) => <RelativeTime at={lastUpdated} />,
    },
  ];
}

function PlanLimits({ plan }: { readonly plan: ListedPlan }) {
  const words = planWords(plan);
  const shadows = plan.additionalLimits?.filter(({ mode }) => mode === 'shadow').length ?? 0;
  const costs = plan.costs?.length ?? 0;
  const more = [shadows > 0 && `${counted(shadows, 'limit')} in shadow`, costs > 0 && counted(costs, 'cost')]
    .filter(Boolean)
    .join(' · ');
  return (
    <span className={styles.words}>
      {words}
      {more !== '' && <span className={styles.more}> · {more}</span>}
    </span>
  );
}
