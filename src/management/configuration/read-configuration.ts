import type { DesiredKey, DesiredState, DesiredWebhook } from '../../desired-state/desired-state.ts';
import {
  type FieldFault,
  InvalidBody,
  MAX_FAULTS,
  PatternNotCanonical,
  PlanNotFound,
  requireNoFaults,
} from '../../errors.ts';
import { patternFault } from '../../events/event-patterns.ts';
import { NO_OVERRIDES } from '../../limiter/limit-overrides.ts';
import type { PathCase } from '../../paths/path-readings.ts';
import { canonicalTerms } from '../../plans/canonical-terms.ts';
import { checkPlan } from '../../plans/check-plan.ts';
import type { NewPlan } from '../../plans/plan-service.ts';
import { parseIsoUtc } from '../../platform/timestamps.ts';
import { digestOfText } from '../../secrets/secret-digest.ts';
import { bodyCheck } from '../body-check.ts';
import { KEY_FIELDS, readTimelessFields } from '../keys/key-fields.ts';
import { readTerms } from '../plans/rate-limits.ts';
import { readWebhookFields } from '../webhooks/webhook-fields.ts';
import {
  CONFIGURATION,
  type WrittenConfiguration,
  type WrittenKey,
  type WrittenPlan,
  type WrittenWebhook,
} from './configuration-schema.ts';

/** Returns a reader of parsed files. It throws `InvalidBody` with the faults of the schema, or else with those of `readConfiguration`. */
export function configurationReader(pathCase: PathCase): (value: unknown) => DesiredState {
  const check = bodyCheck(CONFIGURATION);
  return (value) => {
    check(value);
    // The schema has checked the type.
    return readConfiguration(value as WrittenConfiguration, pathCase);
  };
}

/**
 * Checks what a schema can't. Throws `InvalidBody` with all faults, up to a bound, by their paths; `PatternNotCanonical` if all are of
 * patterns.
 */
export function readConfiguration(
  { plans = [], keys = [], webhooks = [] }: WrittenConfiguration,
  pathCase: PathCase,
): DesiredState {
  const faults: FieldFault[] = [];
  const patternFaults: FieldFault[] = [];
  const readPlans = plans.map((plan, index) => {
    try {
      return { ...plan, ...canonicalTerms(plan, pathCase) };
    } catch (error) {
      if (!(error instanceof PatternNotCanonical)) throw error;
      patternFaults.push(...error.under(`plans[${index}]`).faults);
      return plan;
    }
  });
  const desired = {
    plans: readPlans.flatMap((plan, index) => withFaults(() => readPlan(plan), `plans[${index}]`, faults)),
    keys: keys.flatMap((key, index) => withFaults(() => readKey(key), `keys[${index}]`, faults)),
    webhooks: webhooks.flatMap((webhook, index) =>
      withFaults(() => readWebhook(webhook), `webhooks[${index}]`, faults),
    ),
  };
  const planIds = plans.map(({ rateLimitId }) => rateLimitId);
  const externalIds = keys.map(({ externalId }) => externalId);
  const digests = keys.map(({ secretHash }) => secretHash && digestOfText(secretHash.value).toString('hex'));
  faults.push(
    ...repeated(planIds, 'plans', 'rateLimitId'),
    ...repeated(externalIds, 'keys', 'externalId'),
    ...repeated(digests, 'keys', 'secretHash'),
    ...repeated(
      webhooks.map(({ externalId: id }) => id),
      'webhooks',
      'externalId',
    ),
  );
  if (faults.length === 0 && patternFaults.length > 0)
    throw new PatternNotCanonical(patternFaults.slice(0, MAX_FAULTS));
  requireNoFaults([...patternFaults, ...faults]);
  return desired;
}

function readPlan({ rateLimitId, ...terms }: WrittenPlan): NewPlan {
  const plan = { id: rateLimitId, ...readTerms(terms) };
  checkPlan(plan);
  return plan;
}

function readKey(key: WrittenKey): DesiredKey {
  const { name, externalId, expiresAt, secretHash } = key;
  const fields = readTimelessFields(key);
  return {
    externalId,
    name: name.trim(),
    enabled: fields.enabled ?? true,
    expiresAtMs: typeof expiresAt === 'string' ? (parseIsoUtc(expiresAt) ?? null) : null,
    planId: fields.planId ?? null,
    tags: fields.tags ?? [],
    metadata: fields.metadata ?? null,
    overrides: fields.overrides ?? NO_OVERRIDES,
    allowedIps: fields.allowedIps ?? null,
    allowedOrigins: fields.allowedOrigins ?? null,
    selfService: fields.selfService ?? [],
    secretDigest: secretHash === undefined ? null : digestOfText(secretHash.value),
  };
}

function readWebhook(webhook: WrittenWebhook): DesiredWebhook {
  const { externalId, url, events } = webhook;
  requireNoFaults(
    events.flatMap((pattern, index) => {
      const message = patternFault(pattern);
      return message === undefined ? [] : [{ field: `events[${index}]`, message }];
    }),
  );
  const defaults = { onlyTags: [], description: '', enabled: true, batch: false };
  return { url, events, ...defaults, ...readWebhookFields(webhook), externalId };
}

/** A list with the read value. If it can't be read, the list is empty, and `faults` gets the reasons. */
function withFaults<Value>(read: () => Value, path: string, faults: FieldFault[]): readonly Value[] {
  try {
    return [read()];
  } catch (error) {
    if (error instanceof InvalidBody) faults.push(...error.under(path).faults);
    else if (error instanceof PlanNotFound)
      faults.push({ field: `${path}.rateLimitId`, message: KEY_FIELDS.rateLimitId.description });
    else throw error;
    return [];
  }
}

/** A fault for each value that occurs earlier in the list. */
function repeated(
  values: readonly (string | undefined)[],
  list: 'plans' | 'keys' | 'webhooks',
  field: string,
): readonly FieldFault[] {
  const firsts = new Map<string, number>();
  return values.flatMap((value, index) => {
    if (value === undefined) return [];
    const first = firsts.get(value);
    if (first === undefined) {
      firsts.set(value, index);
      return [];
    }
    return [
      { field: `${list}[${index}].${field}`, message: `must not be the same as that of ${list}[${first}]` },
    ];
  });
}
