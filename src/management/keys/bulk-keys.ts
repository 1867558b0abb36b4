import type { ParsedUrlQuery } from 'node:querystring';
import { InvalidBody, MissingScope } from '../../errors.ts';
import { bodySchema, type FieldSchema } from '../../http/body-schema.ts';
import { type BulkChange, type ChosenKeys, MAX_FILTERED, MAX_IDS } from '../../jobs/bulk-jobs.ts';
import { JOB_ACTIONS, type JobAction, scopeOfAction } from '../../jobs/job.ts';
import { KEY_ID } from '../../keys/key-id.ts';
import type { KeyFilter } from '../../keys/key-list.ts';
import type { KeyChanges } from '../../keys/key-repository.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Endpoint, Reply } from '../endpoint.ts';
import { JOB, presentJob } from '../jobs/shown-job.ts';
import { LIMIT_ID } from '../plans/plan-schema.ts';
import { InvalidParameter } from '../query-parameters.ts';
import { COUNT, named, objectOf } from '../response-schemas.ts';
import { KEY_FIELDS, readFields, TAG_EDITS } from './key-fields.ts';
import { KEY_LIST_QUERY, readKeyFilter } from './key-list-query.ts';

interface BulkBody {
  readonly filter?: ParsedUrlQuery;
  readonly ids?: readonly string[];
  readonly action: JobAction;
  readonly tags?: readonly string[];
  readonly rateLimitId?: string | null;
  readonly expiresAt?: string | null;
  readonly limitId?: string;
  readonly dryRun?: boolean;
  readonly expectCount?: number;
}

/** The field that an action needs beside it. `clear-override` may have one. */
const FIELD_OF_ACTION: Readonly<Record<JobAction, 'tags' | 'rateLimitId' | 'expiresAt' | 'limitId' | null>> =
  {
    enable: null,
    disable: null,
    delete: null,
    'add-tags': 'tags',
    'remove-tags': 'tags',
    'set-plan': 'rateLimitId',
    'set-expiry': 'expiresAt',
    'clear-override': 'limitId',
  };
const ACTION_FIELDS = ['tags', 'rateLimitId', 'expiresAt', 'limitId'] as const;

const { q, status, rateLimitId, externalId, createdAfter, createdBefore, expiresBefore, unusedSince } =
  KEY_LIST_QUERY;

function withoutFormat({ description, type }: FieldSchema): FieldSchema {
  return { description, type };
}

const FILTER: FieldSchema = {
  description: `must be an object with the parameters that filter the list of keys; at most ${MAX_FILTERED} keys may meet it`,
  title: 'BulkKeyFilter',
  type: 'object',
  additionalProperties: false,
  properties: {
    ...{ q, status, rateLimitId, externalId },
    tag: {
      description: 'must be a tag, or a list of at least one tag: only keys that have all of them',
      type: ['string', 'array'],
      minItems: 1,
      items: { description: 'must be a tag', type: 'string' },
    },
    createdAfter: withoutFormat(createdAfter),
    createdBefore: withoutFormat(createdBefore),
    expiresBefore: withoutFormat(expiresBefore),
    unusedSince: withoutFormat(unusedSince),
  },
};

const BULK_BODY = bodySchema(['action'], {
  filter: FILTER,
  ids: {
    description: `must be a list of 1 to ${MAX_IDS} ids of keys, in place of a filter`,
    type: 'array',
    minItems: 1,
    maxItems: MAX_IDS,
    items: { description: 'must be the id of a consumer API key', type: 'string', pattern: KEY_ID.source },
  },
  action: {
    description: `must be one of ${JOB_ACTIONS.join(', ')}`,
    type: 'string',
    enum: JOB_ACTIONS,
  },
  tags: {
    ...TAG_EDITS.addTags,
    description: 'must be a list of 1 to 20 tags; only with add-tags and remove-tags',
    minItems: 1,
  },
  rateLimitId: {
    ...KEY_FIELDS.rateLimitId,
    description: `${KEY_FIELDS.rateLimitId.description}; only with set-plan`,
  },
  expiresAt: {
    ...KEY_FIELDS.expiresAt,
    description: `${KEY_FIELDS.expiresAt.description}; only with set-expiry`,
  },
  limitId: {
    ...LIMIT_ID,
    description: `${LIMIT_ID.description}; only with clear-override, where a missing one stands for all`,
  },
  dryRun: { description: 'must be true or false: whether nothing is changed', type: 'boolean' },
  expectCount: {
    description:
      'must be the number of keys that you expect, an integer from 0; nothing is changed if it is another one',
    type: 'integer',
    minimum: 0,
  },
});

const DRY_RUN = named(
  'BulkDryRun',
  objectOf({
    dryRun: { type: 'boolean', const: true },
    action: { type: 'string', enum: JOB_ACTIONS },
    total: { ...COUNT, description: 'The keys, each once: what expectCount is compared with.' },
    notFound: { ...COUNT, description: 'Those of the ids that name no key.' },
  }),
);

/** Makes a job that changes many keys, each as its own endpoint would. */
export const changeConsumerKeys: Endpoint<BulkBody> = {
  method: 'post',
  path: '/api-keys/bulk',
  operationId: 'changeConsumerKeys',
  summary: 'Change or delete many consumer API keys in the background',
  // Beside the scope of the action: a filter tells what the keys are like.
  scope: 'keys:read',
  body: BULK_BODY,
  bodyLimitBytes: 1024 * 1024,
  status: 200,
  mayCreate: true,
  response: { anyOf: [JOB, DRY_RUN] },
  errors: ['plan_not_found', 'count_mismatch'],
  async handle({ body, principal, change }, { jobs, clock, log }) {
    const wanted = readBulkChange(body, clock);
    const scope = scopeOfAction(wanted.action);
    if (!principal.scopes.has(scope)) throw new MissingScope(scope);
    if (body.dryRun) {
      return { dryRun: true, action: wanted.action, ...(await jobs.preview(wanted, change)) };
    }
    // Of a program nothing is kept that could be looked up later: its job ends with the access token.
    const allowedUntilMs = principal.type === 'program' ? principal.expiresAtMs : null;
    const job = await jobs.create(wanted, change, allowedUntilMs);
    log.info({ event: 'job_created', jobId: job.id, keys: job.total }, 'a job was created');
    return Reply.made(`/tollgate/job/${job.id}`, presentJob({ job, failures: [] }));
  },
};

function readBulkChange(body: BulkBody, clock: Clock): BulkChange {
  const { action, expectCount } = body;
  const needed = FIELD_OF_ACTION[action];
  const foreign = ACTION_FIELDS.find((field) => field !== needed && body[field] !== undefined);
  if (foreign !== undefined) throw fault(foreign, `must not be set with ${action}`);
  if (needed !== null && needed !== 'limitId' && body[needed] === undefined)
    throw fault(needed, `is required with ${action}`);
  return { keys: chosenKeys(body), action, changes: changesOf(body, clock), expectCount };
}

function chosenKeys({ filter, ids, expectCount, dryRun }: BulkBody): ChosenKeys {
  if (filter === undefined && ids !== undefined) return { ids };
  if (filter === undefined || ids !== undefined) throw fault('filter', 'is required, or ids, but not both');
  const read = readFilter(filter);
  // A program that lost its filter must not change every key.
  if (isEmpty(read) && expectCount === undefined && !dryRun)
    throw fault('expectCount', 'is required with an empty filter, which every key meets');
  return { filter: read };
}

function readFilter(filter: ParsedUrlQuery): KeyFilter {
  try {
    return readKeyFilter(filter);
  } catch (error) {
    if (error instanceof InvalidParameter) throw fault(`filter.${error.parameter}`, error.rule);
    throw error;
  }
}

/** Whether every key meets the filter. */
function isEmpty({ tags = [], ...conditions }: KeyFilter): boolean {
  return tags.length === 0 && Object.keys(conditions).length === 0;
}

/** Null: the keys are deleted. Reads the fields as for one key. */
function changesOf({ action, tags = [], limitId, ...body }: BulkBody, clock: Clock): KeyChanges | null {
  switch (action) {
    case 'delete':
      return null;
    case 'enable':
      return readFields({ enabled: true }, clock);
    case 'disable':
      return readFields({ enabled: false }, clock);
    case 'add-tags':
      return { addTags: tags };
    case 'remove-tags':
      return { removeTags: tags };
    case 'set-plan':
      return readFields({ rateLimitId: body.rateLimitId ?? null }, clock);
    case 'set-expiry':
      return readFields({ expiresAt: body.expiresAt ?? null }, clock);
    case 'clear-override':
      return limitId === undefined ? { overrides: {} } : { removeOverride: limitId };
  }
}

function fault(field: string, message: string): InvalidBody {
  return new InvalidBody([{ field, message }]);
}
