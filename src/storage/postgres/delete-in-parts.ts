import { type RawBuilder, sql } from 'kysely';
import type { RecordsDatabase } from './records-database.ts';

/**
 * Removes what is old in parts, because a statement that takes too long is cancelled, and would find even more to do the next time. `part`
 * is what follows `DELETE FROM`, with a limit. Removes one part or more while `goesOn` says so, and resolves with whether there may be others.
 */
export async function deleteInParts(
  db: RecordsDatabase,
  part: RawBuilder<unknown>,
  goesOn: () => boolean = () => true,
): Promise<boolean> {
  let isEnd: boolean;
  do {
    const { numAffectedRows } = await sql`DELETE FROM ${part}`.execute(db);
    isEnd = !numAffectedRows;
  } while (!isEnd && goesOn());
  return !isEnd;
}
