import { useState } from 'react';
import { useLocation } from 'wouter';
import { useApi, useScopes } from '../../api/api-context.tsx';
import { useChange } from '../../api/change.ts';
import { faultSentence } from '../../api/fault-kind.ts';
import { useLive } from '../../api/live.ts';
import { Button } from '../../components/forms/button.tsx';
import { SelectField } from '../../components/forms/field.tsx';
import { Form } from '../../components/forms/form.tsx';
import { Dialog, DialogActions } from '../../components/layout/dialog.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { Notice } from '../../components/states/notice.tsx';
import { Skeleton } from '../../components/states/skeleton.tsx';
import { toast } from '../../components/states/toast.tsx';
import { counted } from '../../format/numbers.ts';
import { planWords } from './limit-words.ts';
import type { ListedPlan, Plan } from './plan-types.ts';
import styles from './plans.module.css';

interface DeletePlanProps {
  readonly plan: Plan;
  readonly etag: string | undefined;
  readonly onClose: () => void;
}

/** Before a plan is deleted, shows the number of its keys and asks for the plan that they get instead. */
export function DeletePlan({ plan, etag, onClose }: DeletePlanProps) {
  const plans = useLive(
    ['plans', 'all'],
    (client, signal) => client.GET('/rate-limit', { params: { query: { include: 'keys' } }, signal }),
    { scope: 'plans:read' },
  );
  return (
    <Dialog onClose={onClose} title={`Delete the plan ${plan.rateLimitId}?`}>
      <LiveState live={plans} what="the plans" skeleton={<Skeleton />}>
        {({ rateLimits }) => <DeleteForm plan={plan} etag={etag} plans={rateLimits} onClose={onClose} />}
      </LiveState>
    </Dialog>
  );
}

type DeleteFormProps = DeletePlanProps & { readonly plans: readonly ListedPlan[] };

function DeleteForm(props: DeleteFormProps) {
  const { plans, plan, onClose } = props;
  const { can } = useScopes();
  const { settings } = useApi().whoami;
  const others = plans.filter((each) => each.rateLimitId !== plan.rateLimitId);
  const boundKeys = plans.find((each) => each.rateLimitId === plan.rateLimitId)?.boundKeys ?? 0;
  const fallback = others.find((each) => each.rateLimitId === settings.defaultPlanId) ?? others[0];
  const [rebindTo, setRebindTo] = useState(fallback?.rateLimitId ?? '');
  const target = others.find((each) => each.rateLimitId === rebindTo);
  const { remove, submit } = useDeletion(props, boundKeys > 0 ? { rebindTo } : {});
  const isMovable = boundKeys === 0 || (can('keys:write') && target !== undefined);
  return (
    <Form onSubmit={submit}>
      {remove.error !== undefined && (
        <Notice tone="failed">
          {remove.errorKind === 'conflict'
            ? 'Another administrator changed this plan meanwhile. Close this and look at it again before you delete it.'
            : faultSentence(remove.error)}
        </Notice>
      )}
      {boundKeys === 0 ? (
        <NoKeys />
      ) : (
        <MovedKeys boundKeys={boundKeys} others={others} target={target} onTarget={setRebindTo} />
      )}
      <DialogActions>
        <Button onClick={onClose}>Keep the plan</Button>
        {isMovable && (
          <Button look="danger" type="submit" aria-disabled={remove.isPending}>
            {boundKeys === 0 ? 'Delete plan' : `Move ${counted(boundKeys, 'key')} and delete`}
          </Button>
        )}
      </DialogActions>
    </Form>
  );
}

/** Deletes the plan and goes to the list. Fails if the plan was changed since it was shown. */
function useDeletion(
  { plan: { rateLimitId }, etag }: DeletePlanProps,
  query: { readonly rebindTo?: string },
) {
  const [, navigate] = useLocation();
  const remove = useChange((client, sent: { readonly rebindTo?: string }) =>
    client.DELETE('/rate-limit/{rateLimitId}', {
      params: {
        path: { rateLimitId },
        query: sent,
        header: etag === undefined ? {} : { 'If-Match': etag },
      },
    }),
  );
  const submit = async () => {
    const gone = await remove.submit(query);
    if (gone === undefined) return;
    navigate('/plans');
    const moved = gone.reboundKeys ?? 0;
    toast.done(
      `The plan ${rateLimitId} is deleted`,
      moved > 0 ? `${counted(moved, 'key')} moved to ${query.rebindTo}.` : undefined,
    );
  };
  return { remove, submit };
}

function NoKeys() {
  const { onlyTags } = useApi().whoami;
  return (
    <p>
      {onlyTags.length > 0
        ? 'No key that this token sees is bound to it. With others it is not deleted.'
        : 'No key is bound to it. Nothing else changes.'}
    </p>
  );
}

interface MovedKeysProps {
  readonly boundKeys: number;
  readonly others: readonly ListedPlan[];
  readonly target: ListedPlan | undefined;
  readonly onTarget: (rateLimitId: string) => void;
}

/** Asks which plan the keys get. */
function MovedKeys({ boundKeys, others, target, onTarget }: MovedKeysProps) {
  const { can } = useScopes();
  return (
    <>
      <p className={styles.lead}>
        {counted(boundKeys, 'key is', 'keys are')} bound to it, and {boundKeys === 1 ? 'gets' : 'get'} another
        plan. Counts of the present windows go on where the new plan has a limit of the same name and period.
      </p>
      {can('keys:write') ? (
        <SelectField
          label="They get the plan"
          hint={target !== undefined && `It allows ${planWords(target)}, from their next request on.`}
          value={target?.rateLimitId ?? ''}
          options={others.map(({ rateLimitId }) => [rateLimitId, rateLimitId])}
          onText={onTarget}
        />
      ) : (
        <Notice tone="limited">
          To move keys to another plan a token needs the scope <code>keys:write</code>, which this one lacks.
        </Notice>
      )}
    </>
  );
}
