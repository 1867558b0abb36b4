import { changedFields, type FieldChanges } from '../audit/audit-entry.ts';
import { type ConfigurationConflict, type FieldFault, requireNoFaults } from '../errors.ts';
import { SHIPPED_PLAN_ID } from '../plans/plan-id.ts';
import type { NewPlan } from '../plans/plan-service.ts';
import type { DesiredKey, DesiredState, DesiredWebhook } from './desired-state.ts';
import type {
  PresentKey,
  PresentPlan,
  PresentState,
  PresentWebhook,
  StateChanges,
} from './desired-state-store.ts';
import {
  digestOf,
  type Written,
  writtenAsLeft,
  writtenKey,
  writtenPlan,
  writtenWebhook,
} from './written-state.ts';

/** Why a record is not changed without `force`. */
export const CONFLICT_REASONS = [
  'not_managed',
  'other_owner',
  'changed_elsewhere',
  /** Several keys, or webhooks, have the externalId. `force` does not resolve this. */
  'ambiguous',
] as const;
type ConflictReason = (typeof CONFLICT_REASONS)[number];

/** A plan, a key or a webhook to create, update or delete. */
export interface Step<Present, Wanted> {
  readonly action: 'create' | 'update' | 'delete';
  /** The rateLimitId or the externalId. */
  readonly id: string;
  /** Undefined if it is to be created. */
  readonly before: Present | undefined;
  /** Undefined if it is to be deleted. */
  readonly wanted: Wanted | undefined;
  /** Whose it is afterwards; null: no owner's, or it is to be deleted. */
  readonly managedBy: string | null;
  /** The fields as a configuration writes them, and `managedBy`. */
  readonly fields: FieldChanges;
  readonly conflict: ConflictReason | undefined;
}

type PlanStep = Step<PresentPlan, NewPlan>;
type KeyStep = Step<PresentKey, DesiredKey>;
export type WebhookStep = Step<PresentWebhook, DesiredWebhook>;

/** The difference between a configuration and the present records. */
export interface Difference {
  readonly plans: readonly PlanStep[];
  readonly keys: readonly KeyStep[];
  readonly webhooks: readonly WebhookStep[];
  /** The number of records that already are as wanted. */
  readonly unchanged: number;
  /** Unchanged records that someone else has brought into the wanted state. */
  readonly notedPlans: StateChanges['notedPlans'];
  readonly notedKeys: StateChanges['notedKeys'];
  readonly notedWebhooks: StateChanges['notedWebhooks'];
  /** SHA-256 of all changes, hexadecimal. */
  readonly digest: string;
}

/** How a configuration is compared with the records. */
export interface DifferenceOptions {
  readonly owner: string;
  /** Whether records of the owner that are not in the configuration are deleted, or released if they can't be. */
  readonly prune: boolean;
  /** Null if keys without a plan are unlimited. */
  readonly defaultPlanId: string | null;
}

/**
 * Compares a configuration with the present records. Throws `InvalidBody` for keys whose plan does not exist or would be
 * deleted.
 */
export function differenceBetween(
  desired: DesiredState,
  present: PresentState,
  options: DifferenceOptions,
): Difference {
  const plans = planComparisons(desired, present, options);
  const keys = keyComparisons(desired, present, options);
  const webhooks = webhookComparisons(desired, present, options);
  requirePlans(desired, present, plans);
  const planSteps = plans.flatMap(({ step }) => step ?? []);
  const keySteps = keys.flatMap(({ step }) => step ?? []);
  const webhookSteps = webhooks.flatMap(({ step }) => step ?? []);
  const steps = [...planSteps, ...keySteps, ...webhookSteps];
  const contents = [planSteps, keySteps, webhookSteps];
  return {
    plans: planSteps,
    keys: keySteps,
    webhooks: webhookSteps,
    unchanged: plans.length + keys.length + webhooks.length - steps.length,
    notedPlans: plans.flatMap(({ noted }) => noted ?? []),
    notedKeys: keys.flatMap(({ noted }) => noted ?? []),
    notedWebhooks: webhooks.flatMap(({ noted }) => noted ?? []),
    digest: digestOf(contents.map((some) => some.map(contentOf))).toString('hex'),
  };
}

/** The conflicts of a difference. With `force`, only those that `force` does not resolve. */
export function conflictsOf(
  { plans, keys, webhooks }: Difference,
  force: boolean,
): readonly ConfigurationConflict[] {
  const of = (type: ConfigurationConflict['type'], steps: readonly AnyStep[]) =>
    steps.flatMap(({ id, conflict }): readonly ConfigurationConflict[] =>
      conflict === undefined || (force && conflict !== 'ambiguous') ? [] : [{ type, id, reason: conflict }],
    );
  return [...of('plan', plans), ...of('key', keys), ...of('webhook', webhooks)];
}

export type AnyStep = PlanStep | KeyStep | WebhookStep;

/** The result for one record; `step` is undefined if nothing is to be changed. */
interface Comparison<S> {
  readonly step: S | undefined;
  readonly noted: Difference['notedKeys'][number] | undefined;
}

function planComparisons(
  { plans }: DesiredState,
  present: PresentState,
  options: DifferenceOptions,
): readonly Comparison<PlanStep>[] {
  const states = present.plans.map(stateOfPlan);
  const wishes = plans.map((wanted) => ({ id: wanted.id, wanted, written: writtenPlan(wanted) }));
  return comparisonsByName<PresentPlan, NewPlan>(wishes, states, options).map((comparison) => {
    const { action, before } = comparison.step ?? {};
    if (action !== 'delete' || before === undefined) return comparison;
    const { id } = before.plan;
    return id === options.defaultPlanId || id === SHIPPED_PLAN_ID ? release(before) : comparison;
  });
}

function keyComparisons(
  { keys }: DesiredState,
  present: PresentState,
  options: DifferenceOptions,
): readonly Comparison<KeyStep>[] {
  const states = present.keys.map(stateOfKey);
  const wishes = keys.map((wanted) => ({ id: wanted.externalId, wanted, written: writtenKey(wanted) }));
  return comparisonsByName<PresentKey, DesiredKey>(wishes, states, options);
}

function webhookComparisons(
  { webhooks }: DesiredState,
  present: PresentState,
  options: DifferenceOptions,
): readonly Comparison<WebhookStep>[] {
  const states = present.webhooks.map(stateOfWebhook);
  const wishes = webhooks.map((wanted) => ({
    id: wanted.externalId,
    wanted,
    written: writtenWebhook(wanted),
  }));
  return comparisonsByName<PresentWebhook, DesiredWebhook>(wishes, states, options);
}

/** Several records may have one externalId: those of the owner come first. */
function comparisonsByName<Present, Wanted>(
  wishes: readonly Omit<Wish<Wanted>, 'owner'>[],
  states: readonly State<Present>[],
  { owner, prune }: DifferenceOptions,
): readonly Comparison<Step<Present, Wanted>>[] {
  const byName = Map.groupBy(states, ({ name }) => name);
  const found = new Set<State<Present>>();
  const wanted = wishes.map((wish) => {
    const candidates = byName.get(wish.id) ?? [];
    const own = candidates.filter(({ managedBy }) => managedBy === owner);
    const matches = own.length > 0 ? own : candidates;
    for (const match of matches) found.add(match);
    const isAmbiguous = matches.length > 1;
    return compare<Present, Wanted>(matches[0], { ...wish, owner, isAmbiguous });
  });
  const gone = prune ? states.filter((state) => state.managedBy === owner && !found.has(state)) : [];
  return [...wanted, ...gone.map((state) => deletion<Present, Wanted>(state))];
}

/** A present record, as it is compared. */
interface State<Present> {
  readonly present: Present;
  readonly recordId: string;
  /** The rateLimitId or the externalId. */
  readonly name: string | null;
  readonly written: Written;
  readonly managedBy: string | null;
  readonly managedDigest: Buffer | null;
  /** A plan that came with the gateway and was never changed: the first owner whose configuration has it may manage it. */
  readonly isUntouched: boolean;
}

function stateOfPlan(present: PresentPlan): State<PresentPlan> {
  const { plan, managedDigest } = present;
  const { id, managedBy } = plan;
  const isUntouched = id === SHIPPED_PLAN_ID && plan.version === 1;
  const written = writtenPlan(plan);
  return { present, recordId: id, name: id, written, managedBy, managedDigest, isUntouched };
}

function stateOfKey(present: PresentKey): State<PresentKey> {
  const { key, managedDigest } = present;
  const { id, externalId: name, managedBy } = key;
  const written = writtenKey(key);
  return { present, recordId: id, name, written, managedBy, managedDigest, isUntouched: false };
}

function stateOfWebhook(present: PresentWebhook): State<PresentWebhook> {
  const { webhook, managedDigest } = present;
  const { id, externalId: name, managedBy } = webhook;
  const written = writtenAsLeft(webhook);
  return { present, recordId: id, name, written, managedBy, managedDigest, isUntouched: false };
}

/** A wanted record, as it is compared. */
interface Wish<Wanted> {
  readonly id: string;
  readonly wanted: Wanted;
  readonly written: Written;
  readonly owner: string;
  readonly isAmbiguous?: boolean;
}

function compare<Present, Wanted>(
  before: State<Present> | undefined,
  { id, wanted, written, owner, isAmbiguous = false }: Wish<Wanted>,
): Comparison<Step<Present, Wanted>> {
  const after = { ...written, managedBy: owner };
  if (before === undefined) {
    const step = { action: 'create', id, before: undefined, wanted, conflict: undefined } as const;
    return { step: { ...step, managedBy: owner, fields: changedFields(null, after) }, noted: undefined };
  }
  const fields = changedFields({ ...before.written, managedBy: before.managedBy }, after);
  if (Object.keys(fields).length > 0 || isAmbiguous) {
    const conflict = isAmbiguous ? 'ambiguous' : conflictWith(before, owner);
    return {
      step: { action: 'update', id, before: before.present, wanted, managedBy: owner, fields, conflict },
      noted: undefined,
    };
  }
  const managedDigest = digestOf(written);
  const isNoted = before.managedDigest?.equals(managedDigest) ?? false;
  return { step: undefined, noted: isNoted ? undefined : { id: before.recordId, managedDigest } };
}

function deletion<Present, Wanted>(before: State<Present>): Comparison<Step<Present, Wanted>> {
  const { present, recordId, name, written, managedBy } = before;
  const id = name ?? recordId;
  const fields = changedFields({ ...written, managedBy }, null);
  const conflict = isChanged(before) ? 'changed_elsewhere' : undefined;
  return {
    step: { action: 'delete', id, before: present, wanted: undefined, managedBy: null, fields, conflict },
    noted: undefined,
  };
}

/** For a plan that can't be deleted: it keeps its limits, also those that were changed elsewhere, and loses its owner. */
function release(before: PresentPlan): Comparison<PlanStep> {
  const { plan } = before;
  const fields = changedFields({ managedBy: plan.managedBy }, { managedBy: null });
  const step = { action: 'update', id: plan.id, before, wanted: plan, managedBy: null, fields } as const;
  return { step: { ...step, conflict: undefined }, noted: undefined };
}

function conflictWith<Present>(before: State<Present>, owner: string): ConflictReason | undefined {
  const { managedBy, isUntouched } = before;
  if (managedBy === null) return isUntouched ? undefined : 'not_managed';
  if (managedBy !== owner) return 'other_owner';
  return isChanged(before) ? 'changed_elsewhere' : undefined;
}

/** Whether the record differs from the state in which a configuration left it. */
function isChanged<Present>({ written, managedDigest }: State<Present>): boolean {
  return managedDigest === null || !managedDigest.equals(digestOf(written));
}

/** Throws `InvalidBody` for keys whose plan would not exist afterwards. */
function requirePlans(
  desired: DesiredState,
  present: PresentState,
  plans: readonly Comparison<PlanStep>[],
): void {
  const after = new Set([...present.plans.map(({ plan }) => plan.id), ...desired.plans.map(({ id }) => id)]);
  for (const { step } of plans) if (step?.action === 'delete') after.delete(step.id);
  const faults = desired.keys.flatMap(({ planId }, index): readonly FieldFault[] => {
    if (planId === null || after.has(planId)) return [];
    const message = 'must be the id of a plan of this configuration, or of one that there is and stays';
    return [{ field: `keys[${index}].rateLimitId`, message }];
  });
  requireNoFaults(faults);
}

/** The part of a step that goes into the digest. */
function contentOf({ action, id, fields, wanted }: AnyStep): unknown {
  const secret =
    action === 'create' && wanted !== undefined && 'secretDigest' in wanted && wanted.secretDigest;
  return [action, id, fields, secret ? secret.toString('hex') : null];
}
