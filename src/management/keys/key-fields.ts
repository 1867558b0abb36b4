import { InvalidBody, PlanNotFound } from '../../errors.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { SELF_SERVICE_ACTIONS, type SelfServiceAction } from '../../keys/consumer-key.ts';
import { MAX_EXTERNAL_ID } from '../../keys/external-id.ts';
import { MAX_KEY_NAME } from '../../keys/key-name.ts';
import type { KeyChanges } from '../../keys/key-repository.ts';
import { MAX_ALLOWED_IPS } from '../../keys/key-restrictions.ts';
import { TAG, TAG_RULE } from '../../keys/key-tags.ts';
import { MAX_ALLOWED_ORIGINS } from '../../keys/origin-list.ts';
import { MAX_TAGS } from '../../permissions/visible-records.ts';
import { isPlanId } from '../../plans/plan-id.ts';
import type { Clock } from '../../platform/clock.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { parseIsoUtc } from '../../platform/timestamps.ts';
import { OVERRIDES, readOverrides, type WrittenOverrides } from './limit-override-fields.ts';

const MAX_METADATA_ENTRIES = 50;
const MAX_METADATA_BYTES = 8 * 1024;
/** Objects and lists within each other, with the metadata itself. Comparisons and YAML of thousands would overflow the stack. */
const MAX_METADATA_DEPTH = 100;

function tags(description: string): FieldSchema {
  const items = { description: `must be a tag ${TAG_RULE}`, type: 'string', pattern: TAG.source };
  return { description, type: 'array', maxItems: MAX_TAGS, items };
}

/** The fields that a new key may have and that an edit may change. */
export const KEY_FIELDS = {
  name: {
    description: `must be a string of 1 to ${MAX_KEY_NAME} characters without control characters or bidirectional controls, not counting blanks around it`,
    type: 'string',
    format: 'key-name',
  },
  enabled: { description: 'must be true or false', type: 'boolean' },
  expiresAt: {
    description:
      'must be an instant in the future as YYYY-MM-DDThh:mm:ssZ (UTC), or null for a key that never expires',
    type: ['string', 'null'],
    format: 'utc-instant',
  },
  rateLimitId: {
    description: 'must be the id of a rate limit plan, or null for the default plan',
    type: ['string', 'null'],
    minLength: 1,
  },
  externalId: {
    description: `must be a string of 1 to ${MAX_EXTERNAL_ID} characters without bidirectional controls that names the owner in your own system, or null`,
    type: ['string', 'null'],
    format: 'external-id',
  },
  tags: {
    ...tags(`must be a list of at most ${MAX_TAGS} tags ${TAG_RULE}, or null for none`),
    type: ['array', 'null'],
  },
  metadata: {
    description: `must be a JSON object of at most ${MAX_METADATA_ENTRIES} entries, ${MAX_METADATA_BYTES} bytes and ${MAX_METADATA_DEPTH} levels, or null`,
    type: ['object', 'null'],
    maxProperties: MAX_METADATA_ENTRIES,
    additionalProperties: true,
  },
  overrides: OVERRIDES,
  allowedIps: {
    description: `must be a list of 1 to ${MAX_ALLOWED_IPS} IP addresses and networks, or null for any address`,
    type: ['array', 'null'],
    minItems: 1,
    maxItems: MAX_ALLOWED_IPS,
    items: {
      description: 'must be an IPv4 or IPv6 address, or a network like 203.0.113.0/24 or 2001:db8::/32',
      type: 'string',
      format: 'ip-network',
    },
  },
  allowedOrigins: {
    description: `must be a list of 1 to ${MAX_ALLOWED_ORIGINS} origins of web pages, or null for any page`,
    type: ['array', 'null'],
    minItems: 1,
    maxItems: MAX_ALLOWED_ORIGINS,
    items: {
      description:
        'must be an origin as browsers write it, like https://app.example.com or http://localhost:3000, or https://*.example.com for all names directly below',
      type: 'string',
      format: 'page-origin',
    },
  },
  selfService: {
    description: `must be a list of what the consumer may do with the key itself, of ${SELF_SERVICE_ACTIONS.join(', ')}; null for nothing`,
    type: ['array', 'null'],
    maxItems: SELF_SERVICE_ACTIONS.length,
    items: {
      description: `must be one of ${SELF_SERVICE_ACTIONS.join(', ')}`,
      type: 'string',
      enum: SELF_SERVICE_ACTIONS,
    },
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** Further fields of an edit, for its tags. */
export const TAG_EDITS = {
  addTags: tags(`must be a list of at most ${MAX_TAGS} tags to add`),
  removeTags: tags(`must be a list of at most ${MAX_TAGS} tags to remove`),
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** `KEY_FIELDS` as they are in a body. */
export interface WrittenKeyFields {
  readonly enabled?: boolean;
  readonly expiresAt?: string | null;
  readonly rateLimitId?: string | null;
  readonly externalId?: string | null;
  readonly tags?: readonly string[] | null;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly overrides?: WrittenOverrides | null;
  readonly allowedIps?: readonly string[] | null;
  readonly allowedOrigins?: readonly string[] | null;
  readonly selfService?: readonly SelfServiceAction[] | null;
}

/** Checks what the schema can't: the expiry must be in the future. `rule` is that of the field. Throws `InvalidBody`. */
export function readExpiry(
  text: string | null | undefined,
  clock: Clock,
  rule: string = KEY_FIELDS.expiresAt.description,
): number | null | undefined {
  if (text === null || text === undefined) return text;
  const expiresAtMs = parseIsoUtc(text);
  if (expiresAtMs !== undefined && expiresAtMs > clock.nowMs()) return expiresAtMs;
  throw new InvalidBody([{ field: 'expiresAt', message: `${rule}; it has passed already` }]);
}

/** Checks what the schema can't: the size and the depth of metadata, and characters that Postgres can't store. */
function readMetadata(metadata: WrittenKeyFields['metadata']): WrittenKeyFields['metadata'] {
  if (metadata === null || metadata === undefined) return metadata;
  const text = JSON.stringify(metadata);
  // Postgres stores neither NUL nor unpaired surrogates; JSON.stringify escapes both, and a backslash as two.
  const isStored = !/\\u(?:0000|d[89a-f][0-9a-f]{2})/.test(text.replaceAll('\\\\', ''));
  const fits = isShort(text) && isShort(writtenOut(text)) && !isDeeper(metadata, MAX_METADATA_DEPTH);
  if (fits && isStored) return metadata;
  throw new InvalidBody([{ field: 'metadata', message: KEY_FIELDS.metadata.description }]);
}

/** A JSON text with numbers about as Postgres writes them: `1e+308` as a 1 and 308 zeros. */
function writtenOut(text: string): string {
  // Strings are matched as a whole: an exponent in one is only text.
  return text.replace(/"(?:[^"\\]|\\.)*"|e[+-](\d+)/g, (match, zeros: string | undefined) =>
    zeros === undefined ? match : '0'.repeat(Number(zeros)),
  );
}

/** Whether a text has at most as many bytes as metadata may have. */
function isShort(text: string): boolean {
  return Buffer.byteLength(text) <= MAX_METADATA_BYTES;
}

/** Whether a value has more levels of objects and lists than `levels`. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

/** The fields in the body, without the name. Throws `InvalidBody`, or `PlanNotFound` for an id that no plan can have. */
export function readFields(body: WrittenKeyFields, clock: Clock): Omit<KeyChanges, 'name'> {
  const expiresAtMs = readExpiry(body.expiresAt, clock);
  return definedFields({ ...readTimelessFields(body), expiresAtMs });
}

/** The fields of `readFields` without the expiry, which would have to be in the future. */
export function readTimelessFields(body: WrittenKeyFields): Omit<KeyChanges, 'name' | 'expiresAtMs'> {
  const { enabled, rateLimitId: planId, externalId, tags, overrides, selfService } = body;
  const { allowedIps, allowedOrigins } = body;
  const metadata = readMetadata(body.metadata);
  // No plan has an id of another form, and Postgres might reject its characters.
  if (typeof planId === 'string' && !isPlanId(planId)) throw new PlanNotFound();
  return definedFields({
    ...{ enabled, planId, externalId, tags: distinct(tags), metadata },
    overrides: overrides === undefined ? undefined : readOverrides(overrides),
    ...{ allowedIps, allowedOrigins, selfService: distinct(selfService) },
  });
}

/** Each item of a list of a body once; null stands for none. */
export function distinct<Item>(items: readonly Item[] | null | undefined): readonly Item[] | undefined {
  return items === undefined ? undefined : [...new Set(items)];
}
