/**
 * Ids of the advisory locks of a database, one for each thing that only one process may do at a time. Other locks of the gateway are named by
 * two numbers (`SHARD_LOCKS`) or by a random id of 64 bits (`PostgresResponseStore`).
 */
export const ADVISORY_LOCKS = {
  /** Applying migrations. */
  migrations: 7_404_265_351,
  /** Applying configurations, one after the other. */
  configurations: 7_404_265_352,
  /** Making events that time brings about. */
  timedEvents: 7_404_265_353,
  /** Making jobs, whose number is bounded. */
  jobs: 7_404_265_354,
} as const;
