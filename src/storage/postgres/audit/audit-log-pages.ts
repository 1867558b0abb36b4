import { type ExpressionBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { AuditFilter, AuditPage } from '../../../audit/audit-log.ts';
import { definedFields } from '../../../platform/defined-fields.ts';
import type { RecordsDatabase, RecordsTables } from '../records-database.ts';

/** As many entries of a span of time that meet a filter are sorted at most. If there are more, reading an index in order soon finds a page. */
const SORTED_AT_MOST = 2500;

/** The entries of a page, newest first, in the order that `AuditPage` says. */
export function entriesOfPage(db: RecordsDatabase, filter: AuditFilter, page: AuditPage) {
  if (filter.fromMs === undefined && filter.toMs === undefined) return entriesOfChain(db, filter, page);
  const { action, actorId, targetId, jobId } = filter;
  const isByTime = [action, actorId, targetId, jobId].every((value) => value === undefined);
  return isByTime ? entriesByTime(db, filter, page) : entriesOfSpan(db, filter, page);
}

function entriesOfChain(db: RecordsDatabase, filter: AuditFilter, page: AuditPage) {
  return olderThan(db.selectFrom('audit_log').selectAll().where(matching(filter)), page)
    .orderBy('sequence', 'desc')
    .limit(page.limit);
}

/** In the order of their times, of which there is an index: in that of the chain Postgres would read all that is newer than the span. */
function entriesByTime(db: RecordsDatabase, filter: AuditFilter, { limit, beforeSequence }: AuditPage) {
  let entries = db.selectFrom('audit_log').selectAll().where(matching(filter));
  if (beforeSequence !== undefined)
    entries = entries.where(
      sql<boolean>`(at, sequence) < ((SELECT at FROM audit_log WHERE sequence = ${beforeSequence}), ${beforeSequence})`,
    );
  return entries.orderBy('at', 'desc').orderBy('sequence', 'desc').limit(limit);
}

/**
 * Those of a filter that has an index with the chain. While the query runs, the number of matches decides whether they are sorted, or that
 * index is read in order, from the end of the span.
 */
function entriesOfSpan(db: RecordsDatabase, filter: AuditFilter, page: AuditPage) {
  const { fromMs, toMs } = filter;
  const matches = olderThan(db.selectFrom('audit_log').select('sequence').where(matching(filter)), page);
  // Without the sum Postgres would look for the greatest number by the primary key.
  const end = db
    .selectFrom('audit_log')
    .select(sql<number>`max(sequence + 0)`.as('end'))
    .where(matching(definedFields({ fromMs, toMs })));
  const many = matches.where(sql<boolean>`NOT (SELECT hold FROM few)`);
  const newest = sql`ORDER BY sequence DESC LIMIT ${page.limit}`;
  const chosen = sql<{ sequence: number }>`(
    WITH found AS MATERIALIZED ${matches.limit(SORTED_AT_MOST + 1)},
      few AS MATERIALIZED (SELECT count(*) <= ${SORTED_AT_MOST} AS hold FROM found)
    (SELECT * FROM found WHERE (SELECT hold FROM few) ${newest})
    UNION ALL
    (SELECT * FROM ${toMs === undefined ? many : many.where('sequence', '<=', end)} AS span ${newest}))`;
  return db
    .selectFrom('audit_log')
    .innerJoin(chosen.as('page'), 'page.sequence', 'audit_log.sequence')
    .selectAll('audit_log')
    .orderBy('page.sequence', 'desc');
}

function olderThan<Output>(
  entries: SelectQueryBuilder<RecordsTables, 'audit_log', Output>,
  { beforeSequence }: AuditPage,
): SelectQueryBuilder<RecordsTables, 'audit_log', Output> {
  return beforeSequence === undefined ? entries : entries.where('sequence', '<', beforeSequence);
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
