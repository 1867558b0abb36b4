import { type ExpressionBuilder, sql } from 'kysely';
import type { AuditFilter, AuditPage } from '../../../audit/audit-log.ts';
import type { RecordsDatabase, RecordsTables } from '../records-database.ts';

/** As many entries of a span of time that meet a filter are sorted at most. If there are more, reading the span in order soon finds a page. */
const SORTED_AT_MOST = 2500;

/** The entries of a page, newest first, in the order that `AuditPage` says. */
export function entriesOfPage(db: RecordsDatabase, filter: AuditFilter, page: AuditPage) {
  const isSpan = filter.fromMs !== undefined || filter.toMs !== undefined;
  return isSpan ? entriesOfSpan(db, filter, page) : entriesOfChain(db, filter, page);
}

function entriesOfChain(db: RecordsDatabase, filter: AuditFilter, { limit, beforeSequence }: AuditPage) {
  let entries = db.selectFrom('audit_log').selectAll().where(matching(filter));
  if (beforeSequence !== undefined) entries = entries.where('sequence', '<', beforeSequence);
  return entries.orderBy('sequence', 'desc').limit(limit);
}

/**
 * Chooses the entries first. While the query runs, the number of matches decides whether they are sorted or an index is read in order: that of
 * times, because in the order of the chain Postgres would read all that is newer than the span; or that of the other filter, if it has one.
 */
function entriesOfSpan(db: RecordsDatabase, filter: AuditFilter, { limit, beforeSequence }: AuditPage) {
  const { action, actorId, targetId, jobId } = filter;
  const isByTime = [action, actorId, targetId, jobId].every((value) => value === undefined);
  let matches = db.selectFrom('audit_log').select(['at', 'sequence']).where(matching(filter));
  if (beforeSequence !== undefined)
    matches = matches.where(
      isByTime
        ? sql<boolean>`(at, sequence) < ((SELECT at FROM audit_log WHERE sequence = ${beforeSequence}), ${beforeSequence})`
        : sql<boolean>`sequence < ${beforeSequence}`,
    );
  const order = isByTime ? sql`at DESC, sequence DESC` : sql`sequence DESC`;
  const newest = sql`ORDER BY ${order} LIMIT ${limit}`;
  const chosen = sql<{ at: Date; sequence: number }>`(
    WITH found AS MATERIALIZED ${matches.limit(SORTED_AT_MOST + 1)},
      few AS MATERIALIZED (SELECT count(*) <= ${SORTED_AT_MOST} AS hold FROM found)
    (SELECT * FROM found WHERE (SELECT hold FROM few) ${newest})
    UNION ALL
    (SELECT * FROM ${matches.where(sql<boolean>`NOT (SELECT hold FROM few)`)} AS span ${newest}))`;
  const entries = db
    .selectFrom('audit_log')
    .innerJoin(chosen.as('page'), 'page.sequence', 'audit_log.sequence')
    .selectAll('audit_log');
  return (isByTime ? entries.orderBy('page.at', 'desc') : entries).orderBy('page.sequence', 'desc');
}

/** The condition that an entry meets the filter. */
export function matching({
  fromMs,
  toMs,
  action,
  actorId,
  targetId,
  jobId,
  outcome,
  onlyTags = [],
}: AuditFilter) {
  return ({ eb, and }: ExpressionBuilder<RecordsTables, 'audit_log'>) => {
    const wanted = [];
    if (fromMs !== undefined) wanted.push(eb('at', '>=', new Date(fromMs)));
    if (toMs !== undefined) wanted.push(eb('at', '<', new Date(toMs)));
    if (action !== undefined) wanted.push(eb('action', '=', action));
    if (actorId === 'root' || actorId === 'config') wanted.push(eb('actor_type', '=', actorId));
    else if (actorId !== undefined) wanted.push(eb('actor_id', '=', actorId));
    if (targetId !== undefined) wanted.push(eb('target_id', '=', targetId));
    if (jobId !== undefined) wanted.push(eb('job_id', '=', jobId));
    if (outcome !== undefined) wanted.push(eb('outcome', '=', outcome));
    if (onlyTags.length > 0)
      wanted.push(sql<boolean>`target_tags @> ${onlyTags}::text[] AND target_tags <> '{}'`);
    return and(wanted);
  };
}
