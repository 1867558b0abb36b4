import { hash } from 'node:crypto';
import { auditedInstant } from '../audit/audit-entry.ts';
import type { Webhook } from '../events/webhook.ts';
import { auditedOverrides } from '../keys/audited-key.ts';
import type { AdditionalLimit, PlanCost, PlanTerms } from '../plans/plan.ts';
import type { ConfiguredKeyFields, ConfiguredWebhookFields } from './desired-state.ts';

/**
 * A plan, a key or a webhook as a configuration writes it: with the names of the API, and without fields that have the value of a new one. A field
 * that a later version adds is missing in older records, so that it does not make them count as changed.
 */
export type Written = Readonly<Record<string, unknown>>;

export function writtenPlan({
  id,
  description,
  limit,
  period,
  additionalLimits,
  costs,
}: PlanTerms & { readonly id: string }): Written {
  return withoutMissing({
    rateLimitId: id,
    description,
    limit,
    period,
    additionalLimits: additionalLimits.length === 0 ? undefined : additionalLimits.map(writtenLimit),
    costs: costs.length === 0 ? undefined : costs.map(writtenCost),
  });
}

export function writtenKey(key: ConfiguredKeyFields & { readonly externalId: string | null }): Written {
  const { externalId, name, enabled, expiresAtMs, planId, metadata, overrides } = key;
  const { tags, allowedIps, allowedOrigins, selfService } = key;
  return withoutMissing({
    externalId,
    name,
    rateLimitId: planId,
    enabled: enabled ? undefined : false,
    expiresAt: auditedInstant(expiresAtMs),
    tags: tags.length === 0 ? undefined : tags,
    metadata,
    overrides: Object.keys(overrides).length === 0 ? undefined : writtenOverrides(overrides),
    allowedIps,
    allowedOrigins,
    selfService: selfService.length === 0 ? undefined : selfService,
  });
}

export function writtenWebhook(
  webhook: ConfiguredWebhookFields & { readonly externalId: string | null },
): Written {
  const { externalId, url, events, onlyTags, description, enabled, batch } = webhook;
  return withoutMissing({
    ...{ externalId, url, events },
    onlyTags: onlyTags.length === 0 ? undefined : onlyTags,
    description: description || undefined,
    enabled: enabled ? undefined : false,
    batch: batch || undefined,
  });
}

/** A webhook as people left it: that the gateway has disabled it (`disabledReason`) is no change of it. */
export function writtenAsLeft(webhook: Webhook): Written {
  return writtenWebhook({ ...webhook, enabled: webhook.enabled || webhook.disabledReason !== null });
}

/** SHA-256 of the fields in any order. */
export function digestOf(written: unknown): Buffer {
  return hash('sha256', JSON.stringify(inOrder(written)), 'buffer');
}

/** Sets the order of the fields, which Postgres does not keep. */
function writtenLimit({ limitId, limit, period, per, mode, match }: AdditionalLimit): Written {
  return withoutMissing({ limitId, limit, period, per, mode, match });
}

function writtenCost({ methods, path, cost, reserve }: PlanCost): Written {
  return withoutMissing({ methods, path, cost, reserve });
}

function writtenOverrides(overrides: ConfiguredKeyFields['overrides']): Written {
  return Object.fromEntries(
    Object.entries(auditedOverrides(overrides))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([limitId, { limit, until }]) => [limitId, until === null ? { limit } : { limit, until }]),
  );
}

function withoutMissing(fields: Readonly<Record<string, unknown>>): Written {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  // As pairs, because an object would put names that look like numbers first, and drop a field named __proto__.
  return fields.map(([name, inner]) => [name, inOrder(inner)]);
}
