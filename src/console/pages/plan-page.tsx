import { Pencil, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { useApi, useScopes } from '../api/api-context.tsx';
import { useLive } from '../api/live.ts';
import { Button, ButtonLink } from '../components/forms/button.tsx';
import { CopyButton } from '../components/forms/copy-button.tsx';
import { PageHeader } from '../components/layout/page-header.tsx';
import { PanelStack } from '../components/layout/panels.tsx';
import { LiveState } from '../components/states/live-state.tsx';
import { Skeleton } from '../components/states/skeleton.tsx';
import { StatusBadge } from '../components/text/status-badge.tsx';
import { BoundKeys } from './plans/bound-keys.tsx';
import { DeletePlan } from './plans/delete-plan.tsx';
import { EditPlan } from './plans/editor/edit-plan.tsx';
import { planWords } from './plans/limit-words.ts';
import { PlanTermsPanels } from './plans/plan-terms-panels.tsx';
import type { Plan } from './plans/plan-types.ts';
import { PlanUsage } from './plans/plan-usage.tsx';
import { ShadowPanel } from './plans/shadow-panel.tsx';

interface PlanPageProps {
  readonly params: Readonly<Record<string, string | undefined>>;
}

/** The page of a plan: its limits, its keys and its usage. */
export function PlanPage({ params }: PlanPageProps) {
  const rateLimitId = params.rateLimitId ?? '';
  const [search, setSearch] = useSearchParams();
  const { can } = useScopes();
  const plan = useLive(
    ['plan', rateLimitId],
    (client, signal) =>
      client.GET('/rate-limit/{rateLimitId}', { params: { path: { rateLimitId } }, signal }),
    { scope: 'plans:read' },
  );
  const isEdited = search.has('edit') && can('plans:write');
  if (plan.data === undefined || plan.status === 'not-found')
    return (
      <>
        <PageHeader title={rateLimitId} back={BACK} />
        <LiveState live={plan} what="the plan" skeleton={<Skeleton />}>
          {() => null}
        </LiveState>
      </>
    );
  if (isEdited)
    return <EditPlan plan={plan.data} etag={plan.etag} onDone={() => setSearch({}, { replace: true })} />;
  return (
    <>
      <PlanHeader plan={plan.data} etag={plan.etag} />
      <LiveState live={plan} what="the plan" skeleton={<Skeleton />}>
        {(shown) => (
          <PanelStack>
            <PlanTermsPanels plan={shown} />
            {can('usage:read') && <PlanUsage rateLimitId={rateLimitId} />}
            <ShadowPanel plan={shown} />
            {can('keys:read') && <BoundKeys rateLimitId={rateLimitId} />}
          </PanelStack>
        )}
      </LiveState>
    </>
  );
}

const BACK = { href: '/plans', label: 'Plans' } as const;

function PlanHeader({ plan, etag }: { readonly plan: Plan; readonly etag: string | undefined }) {
  const { rateLimitId, description } = plan;
  const { can } = useScopes();
  const { defaultPlanId } = useApi().whoami.settings;
  const [isDeleting, setDeleting] = useState(false);
  const isDefault = rateLimitId === defaultPlanId;
  // The gateway never deletes these two plans.
  const isKept = isDefault || rateLimitId === 'default';
  return (
    <>
      <PageHeader
        title={rateLimitId}
        back={BACK}
        badge={
          <>
            <CopyButton text={rateLimitId} what="plan id" />
            {isDefault && <StatusBadge tone="accent">Default: for keys without a plan</StatusBadge>}
          </>
        }
        about={
          <>
            Allows {planWords(plan)}.{description !== '' && <bdi> {description}</bdi>}
          </>
        }
        actions={
          can('plans:write') && (
            <>
              {!isKept && (
                <Button onClick={() => setDeleting(true)}>
                  <Trash2 aria-hidden="true" />
                  Delete…
                </Button>
              )}
              <ButtonLink look="primary" href={`/plans/${encodeURIComponent(rateLimitId)}?edit`}>
                <Pencil aria-hidden="true" />
                Edit plan
              </ButtonLink>
            </>
          )
        }
      />
      {isDeleting && <DeletePlan plan={plan} etag={etag} onClose={() => setDeleting(false)} />}
    </>
  );
}
