import type { ParsedUrlQuery } from 'node:querystring';
import { AUDIT_ACTIONS } from '../../audit/audit-entry.ts';
import type { AuditFilter, AuditPage } from '../../audit/audit-log.ts';
import { InvalidCursor } from '../../errors.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { OWNER } from '../../plans/owner-name.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { INSTANT_RULE, recordedInstant } from '../formats.ts';
import { readCursor, writeCursor } from '../page-cursor.ts';
import { COUNTED_PAGE_QUERY, isCounted, readPage } from '../page-query.ts';
import { queryParameters } from '../query-parameters.ts';

const IDS = {
  /** An id, or the subject of a person. */
  actorId: /^[\x21-\x7e]{1,255}$/,
  /** Ids of plans and operations have no other characters than an owner, which is the id of a configuration. */
  targetId: OWNER,
  jobId: /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
} as const;

/** The query parameters of the audit log. */
export const AUDIT_QUERY = {
  from: {
    description: `${INSTANT_RULE}: only entries from then on`,
    type: 'string',
    format: 'query-instant',
  },
  to: { description: `${INSTANT_RULE}: only entries before`, type: 'string', format: 'query-instant' },
  action: {
    description: `must be one of ${AUDIT_ACTIONS.join(', ')}`,
    type: 'string',
    enum: AUDIT_ACTIONS,
  },
  actorId: {
    description:
      'must be the id of an admin token, or of a key that changed itself, the subject of a person or a program, or root or config: only what they did',
    type: 'string',
    pattern: IDS.actorId.source,
  },
  targetId: {
    description:
      'must be the id of a key, a plan, an admin token, a webhook, a session, a job or an operation, or the owner of a configuration: only what was done to it',
    type: 'string',
    pattern: IDS.targetId.source,
  },
  jobId: {
    description: 'must be the id of a job: only what it did',
    type: 'string',
    pattern: IDS.jobId.source,
  },
  format: {
    description: 'must be json or csv; decides before the Accept header does',
    type: 'string',
    enum: ['json', 'csv'],
  },
  ...COUNTED_PAGE_QUERY,
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { readParsed, readValid, readWord } = queryParameters(AUDIT_QUERY);

/** The part of the log that a query requests. */
export interface AuditQuery {
  readonly filter: AuditFilter;
  readonly page: AuditPage;
  /** Undefined if the Accept header decides. */
  readonly format: 'json' | 'csv' | undefined;
  readonly isCounted: boolean;
  /** The cursor of the page that follows an entry. */
  cursorAfter(sequence: number): string;
}

/** Throws `invalid_parameter` for a bad or repeated parameter, and `InvalidCursor` for a cursor of another query. */
export function readAuditQuery(query: ParsedUrlQuery): AuditQuery {
  const { limit, cursor } = readPage(query);
  const action = readWord(query, 'action', AUDIT_ACTIONS);
  const fromMs = readParsed(query, 'from', recordedInstant);
  const toMs = readParsed(query, 'to', recordedInstant);
  const [actorId, targetId] = [readId(query, 'actorId'), readId(query, 'targetId')];
  const jobId = readId(query, 'jobId');
  const filter = definedFields({ fromMs, toMs, action, actorId, targetId, jobId });
  const beforeSequence = cursor === undefined ? undefined : sequenceOf(cursor, filter);
  return {
    filter,
    page: definedFields({ limit, beforeSequence }),
    format: readWord(query, 'format', AUDIT_QUERY.format.enum),
    isCounted: isCounted(query),
    cursorAfter: (sequence) => writeCursor([sequence], filter),
  };
}

function sequenceOf(cursor: string, filter: AuditFilter): number {
  const [sequence] = readCursor(cursor, filter);
  if (typeof sequence !== 'number' || !Number.isSafeInteger(sequence)) throw new InvalidCursor();
  return sequence;
}

function readId(query: ParsedUrlQuery, name: keyof typeof IDS): string | undefined {
  return readValid(query, name, (text) => IDS[name].test(text));
}
