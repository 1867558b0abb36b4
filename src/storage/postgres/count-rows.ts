import type { SelectQueryBuilder } from 'kysely';
import type { RecordsTables } from './records-database.ts';

/** How many rows a query of one table selects. */
export async function countRows<Table extends keyof RecordsTables>(
  rows: SelectQueryBuilder<RecordsTables, Table, object>,
): Promise<number> {
  const counted = rows.select(({ fn }) => fn.countAll<number>().as('total'));
  return (await counted.executeTakeFirstOrThrow()).total;
}
