import { type BodySchema, bodySchema, type FieldSchema } from '../../http/body-schema.ts';
import { OWNER, OWNER_FORM } from '../../plans/owner-name.ts';
import { KEY_FIELDS, type WrittenKeyFields } from '../keys/key-fields.ts';
import { SECRET_HASH } from '../keys/secret-fields.ts';
import { CREATE_PLAN_BODY, type CreatePlanBody } from '../plans/plan-schema.ts';
import { WEBHOOK_FIELDS, type WrittenWebhookFields } from '../webhooks/webhook-fields.ts';

/** The most plans in a configuration. */
const MAX_CONFIGURED_PLANS = 1000;
/** The most keys in a configuration. */
const MAX_CONFIGURED_KEYS = 10_000;
/** The most webhooks in a configuration. */
const MAX_CONFIGURED_WEBHOOKS = 100;

/** A configuration as a file or a body contains it. */
export interface WrittenConfiguration {
  readonly plans?: readonly WrittenPlan[];
  readonly keys?: readonly WrittenKey[];
  readonly webhooks?: readonly WrittenWebhook[];
}

export type WrittenPlan = Omit<CreatePlanBody, 'description'> & { readonly description?: string };

export interface WrittenKey extends WrittenKeyFields {
  readonly externalId: string;
  readonly name: string;
  readonly secretHash?: { readonly value: string };
}

export interface WrittenWebhook extends Omit<WrittenWebhookFields, 'headers'> {
  readonly externalId: string;
  readonly url: string;
  readonly events: readonly string[];
}

const PLAN: FieldSchema = {
  title: 'ConfiguredPlan',
  description: 'must be a plan: an object with "rateLimitId", "limit", "period" and what else a plan has',
  type: 'object',
  additionalProperties: false,
  required: ['rateLimitId', 'limit', 'period'],
  properties: CREATE_PLAN_BODY.properties,
};

const { externalId, ...KEY_FIELDS_BESIDES } = KEY_FIELDS;

const KEY: FieldSchema = {
  title: 'ConfiguredKey',
  description: 'must be a key: an object with "externalId", "name" and what else a key has',
  type: 'object',
  additionalProperties: false,
  required: ['externalId', 'name'],
  properties: {
    externalId: {
      ...externalId,
      description:
        'must be a string of 1 to 128 characters without bidirectional controls by which the key is found again, which no other key of the configuration has',
      type: 'string',
    },
    ...KEY_FIELDS_BESIDES,
    expiresAt: {
      ...KEY_FIELDS.expiresAt,
      description:
        'must be an instant as YYYY-MM-DDThh:mm:ssZ (UTC), or null for a key that never expires; one that has passed makes it expired',
    },
    secretHash: {
      ...SECRET_HASH,
      description: `${SECRET_HASH.description}; it counts only where the key is made, and without it the gateway makes a secret`,
    },
  },
};

const { externalId: _, headers: __, ...WEBHOOK_FIELDS_BESIDES } = WEBHOOK_FIELDS;

const WEBHOOK: FieldSchema = {
  title: 'ConfiguredWebhook',
  description:
    'must be a webhook: an object with "externalId", "url", "events" and what else a webhook has but headers',
  type: 'object',
  additionalProperties: false,
  required: ['externalId', 'url', 'events'],
  properties: {
    externalId: {
      ...externalId,
      description:
        'must be a string of 1 to 128 characters without bidirectional controls by which the webhook is found again, which no other webhook of the configuration has',
      type: 'string',
    },
    ...WEBHOOK_FIELDS_BESIDES,
  },
};

/** The schema of a configuration. It describes records in full: a missing field has the value that it has in a new one. */
export const CONFIGURATION = {
  title: 'Configuration',
  description: 'must be an object with "plans", "keys" and "webhooks"',
  type: 'object',
  additionalProperties: false,
  required: [],
  properties: {
    $schema: { description: 'must be a string; it is for editors', type: 'string' },
    plans: {
      description: `must be a list of at most ${MAX_CONFIGURED_PLANS} plans`,
      type: 'array',
      maxItems: MAX_CONFIGURED_PLANS,
      items: PLAN,
    },
    keys: {
      description: `must be a list of at most ${MAX_CONFIGURED_KEYS} keys`,
      type: 'array',
      maxItems: MAX_CONFIGURED_KEYS,
      items: KEY,
    },
    webhooks: {
      description: `must be a list of at most ${MAX_CONFIGURED_WEBHOOKS} webhooks`,
      type: 'array',
      maxItems: MAX_CONFIGURED_WEBHOOKS,
      items: WEBHOOK,
    },
  },
} as const satisfies BodySchema & FieldSchema;

/** Longest body with a configuration, in bytes. */
export const CONFIGURATION_LIMIT_BYTES = 8 * 1024 * 1024;

/** The rule for an owner's name. */
export const OWNER_RULE = `must be ${OWNER_FORM}, that name whose configuration it is`;

const TERMS = {
  config: CONFIGURATION,
  owner: {
    description: `${OWNER_RULE}, without a secret in it`,
    type: 'string',
    pattern: OWNER.source,
    format: 'shown-name',
  },
  prune: {
    description:
      'must be true or false: whether what the owner manages and the configuration does not have is deleted',
    type: 'boolean',
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

export interface DiffBody {
  readonly config: WrittenConfiguration;
  readonly owner: string;
  readonly prune?: boolean;
}
export const DIFF_BODY = bodySchema(['config', 'owner'], TERMS);

export interface ApplyBody extends DiffBody {
  readonly force?: boolean;
  readonly expectDigest?: string;
}
export const APPLY_BODY: BodySchema = {
  ...DIFF_BODY,
  properties: {
    ...TERMS,
    force: {
      description:
        'must be true or false: whether what is managed elsewhere, or was changed there, is taken over',
      type: 'boolean',
    },
    expectDigest: {
      description: 'must be the digest of the difference that is to be applied: 64 hexadecimal digits',
      type: 'string',
      pattern: '^[0-9a-f]{64}$',
    },
  },
};
