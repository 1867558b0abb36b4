import { type RawBuilder, sql } from 'kysely';

/** Whether a row of admin tokens, sessions, webhooks or jobs is limited to all of these tags. Without tags, every row is. */
export function isLimitedTo(tags: readonly string[]): RawBuilder<boolean> {
  return sql<boolean>`only_tags @> ${tags}::text[]`;
}
