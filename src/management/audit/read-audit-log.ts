import type { ParsedUrlQuery } from 'node:querystring';
import { AUDIT_ACTIONS, type AuditEntry, auditIdOf } from '../../audit/audit-entry.ts';
import { type AuditFilter, type AuditLog, CHAIN_PROBLEMS, EXPECTATIONS } from '../../audit/audit-log.ts';
import type { Actor } from '../../audit/change-context.ts';
import { TollgateError } from '../../errors.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { type CsvValue, csvFile, csvRows } from '../../platform/text/csv.ts';
import { isoSeconds, isoSecondsOrNull } from '../../platform/timestamps.ts';
import { type Endpoint, StreamedText } from '../endpoint.ts';
import { pageSchema } from '../list-page.ts';
import { COUNT, INSTANT, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { AUDIT_QUERY, readAuditQuery } from './audit-query.ts';
import { readExpectedHead, VERIFY_QUERY } from './verify-query.ts';

const ENTRY = named(
  'AuditEntry',
  objectOf({
    auditId: TEXT,
    at: INSTANT,
    action: { type: 'string', enum: AUDIT_ACTIONS },
    actor: named(
      'AuditActor',
      objectOf(
        {
          type: { type: 'string', enum: ['root', 'token', 'person', 'program', 'config', 'key', 'gateway'] },
          adminTokenId: orNull(TEXT),
          name: TEXT,
        },
        {
          subject: { ...TEXT, description: 'By which the identity provider knows a person or a program.' },
          email: { ...TEXT, description: 'Of a person, if it is known.' },
        },
      ),
    ),
    target: named(
      'AuditTarget',
      objectOf({
        type: {
          type: 'string',
          enum: ['key', 'plan', 'token', 'session', 'webhook', 'job', 'configuration', 'operation'],
        },
        id: TEXT,
        name: orNull(TEXT),
      }),
    ),
    changes: {
      type: 'object',
      description: 'By the names of the fields.',
      additionalProperties: named('FieldChange', objectOf({ from: {}, to: {} })),
    },
    reason: {
      ...orNull(TEXT),
      description: 'From the header X-Audit-Reason or the body; that of the gateway for what it did itself.',
    },
    requestId: TEXT,
    address: TEXT,
    outcome: { ...TEXT, description: '"success", or the code of the error with which it was rejected.' },
    jobId: { ...orNull(TEXT), description: 'The change of many keys that it is a part of.' },
  }),
);

/** Shows what was done, newest first. */
export const listAuditLog: Endpoint = {
  method: 'get',
  path: '/tollgate/audit-log',
  operationId: 'listAuditLog',
  summary: 'Show who changed what, newest first',
  scope: 'audit:read',
  query: AUDIT_QUERY,
  status: 200,
  response: pageSchema('entries', ENTRY),
  csv: true,
  errors: ['invalid_cursor'],
  async handle({ query, principal, prefers }, { audit }) {
    const { filter: wanted, page, format, isCounted, cursorAfter } = readAuditQuery(query);
    const filter = { ...wanted, onlyTags: principal.onlyTags };
    if ((format ?? prefers(['json', 'csv'])) === 'csv') {
      rejectPages(query);
      const first = await audit.list(filter, { limit: ROWS_AT_ONCE });
      return new StreamedText('text/csv', auditFile(audit, filter, first));
    }
    // One entry more than requested shows whether there is a next page.
    const [found, total] = await Promise.all([
      audit.list(filter, { ...page, limit: page.limit + 1 }),
      isCounted ? audit.count(filter) : undefined,
    ]);
    const entries = found.slice(0, page.limit);
    const last = entries.at(-1);
    const hasMore = found.length > page.limit && last !== undefined;
    return {
      entries: entries.map(presentEntry),
      nextCursor: hasMore ? cursorAfter(last.sequence) : undefined,
      total,
    };
  },
};

/** Shows whether an entry of the log was changed, added or removed later. */
export const verifyAuditLog: Endpoint = {
  method: 'get',
  path: '/tollgate/audit-log/verify',
  operationId: 'verifyAuditLog',
  summary: 'Check that no entry of the audit log was changed or removed',
  scope: 'audit:read',
  query: VERIFY_QUERY,
  status: 200,
  response: {
    type: 'object',
    required: ['valid', 'entries', 'count', 'lastHash', 'lastAt'],
    properties: {
      valid: {
        type: 'boolean',
        description: 'Whether the chain is whole and continues the expected entry, if there is one.',
      },
      entries: { ...COUNT, description: 'Those that are in order.' },
      problem: {
        type: 'string',
        enum: CHAIN_PROBLEMS,
        description: 'Why the chain is not whole; missing if it is.',
      },
      firstBroken: {
        ...TEXT,
        description: 'The auditId of the first entry that was changed, put in or removed.',
      },
      count: { ...COUNT, description: 'All entries ever written, those removed for their age included.' },
      lastHash: { ...TEXT, description: 'Of the newest entry, hexadecimal.' },
      lastAt: {
        ...orNull(INSTANT),
        description: 'When the newest entry was written. Null where none is kept, or the chain is not whole.',
      },
      expectation: {
        type: 'string',
        enum: EXPECTATIONS,
        description:
          'With expectCount and expectHash: "met"; "other_hash": the log was rewritten; "cut_off": it ends before that entry; or "expired": the entry was removed for its age. Missing if the chain is not whole.',
      },
    },
  },
  errors: ['invalid_parameter'],
  async handle({ query }, { audit, log }) {
    const { isValid, entries, problem, firstBroken, head, expectation } = await audit.verify(
      readExpectedHead(query),
    );
    const { count, hash } = head;
    const lastAt = isoSecondsOrNull(head.atMs);
    log.info({ count, hash, at: lastAt, valid: isValid }, 'the head of the audit log');
    return {
      ...{ valid: isValid, entries, problem },
      firstBroken: firstBroken && auditIdOf(firstBroken),
      ...{ count, lastHash: hash, lastAt, expectation },
    };
  },
};

/**
 * Rows of a CSV file that are read with one query, and so in one turn of the event loop. V8 allocates objects in the old generation once it has found a
 * hundred in use that one place in the code has made.
 */
const ROWS_AT_ONCE = 90;
/** The columns of a CSV file, with the cell of an entry. */
const COLUMNS: Readonly<Record<string, (entry: AuditEntry, actor: ShownActor) => CsvValue>> = {
  auditId: ({ sequence }) => auditIdOf(sequence),
  at: ({ atMs }) => isoSeconds(atMs),
  action: ({ action }) => action,
  actorType: (_, { type }) => type,
  adminTokenId: (_, { adminTokenId }) => adminTokenId,
  actorName: (_, { name }) => name,
  targetType: ({ target }) => target.type,
  targetId: ({ target }) => target.id,
  targetName: ({ target }) => target.name,
  changes: ({ changesText }) => changesText,
  reason: ({ reason }) => reason,
  requestId: ({ requestId }) => requestId,
  address: ({ address }) => address,
  outcome: ({ outcome }) => outcome,
  actorSubject: (_, { subject }) => subject,
  actorEmail: (_, { email }) => email,
  jobId: ({ jobId }) => jobId,
};
const CELLS = Object.values(COLUMNS);

/** All entries, page by page, so that a long log is never in memory as a whole. */
async function* auditFile(
  audit: AuditLog,
  filter: AuditFilter,
  first: readonly AuditEntry[],
): AsyncGenerator<string, void, undefined> {
  yield* csvFile(Object.keys(COLUMNS), first.map(presentRow));
  let rows = first;
  for (let last = rows.at(-1); rows.length === ROWS_AT_ONCE && last !== undefined; last = rows.at(-1)) {
    rows = await audit.list(filter, { limit: ROWS_AT_ONCE, beforeSequence: last.sequence });
    yield* csvRows(rows.map(presentRow));
  }
}

function presentRow(entry: AuditEntry): readonly CsvValue[] {
  const actor = presentActor(entry.actor);
  return CELLS.map((cellOf) => cellOf(entry, actor));
}

function presentEntry(entry: AuditEntry): object {
  const { sequence, atMs, action, target, changesText, reason, requestId, address, outcome } = entry;
  const { jobId } = entry;
  return {
    auditId: auditIdOf(sequence),
    at: isoSeconds(atMs),
    action,
    actor: presentActor(entry.actor),
    target: { type: target.type, id: target.id, name: target.name },
    changes: JSON.parse(changesText),
    reason,
    requestId,
    address,
    outcome,
    jobId,
  };
}

interface ShownActor extends Pick<Actor, 'type' | 'name' | 'email'> {
  readonly adminTokenId: string | null;
  /** Of a person or a program. */
  readonly subject?: string;
}

/** The fields of an actor by their names in the API. */
function presentActor({ type, id, name, email }: Actor): ShownActor {
  const hasSubject = (type === 'person' || type === 'program') && id !== null;
  return {
    ...{ type, adminTokenId: type === 'token' ? id : null, name },
    ...definedFields({ subject: hasSubject ? id : undefined, email }),
  };
}

/** Throws for the parameters of a page: a file with one page would be taken for the whole log. */
function rejectPages({ limit, cursor, count }: ParsedUrlQuery): void {
  if (limit === undefined && cursor === undefined && count === undefined) return;
  throw new TollgateError(
    'invalid_parameter',
    'A CSV file has all rows: leave "limit", "cursor" and "count" out.',
  );
}
