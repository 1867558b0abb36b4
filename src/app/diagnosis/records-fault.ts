import { StoreUnavailable } from '../../errors.ts';
import { failureReason, isPassing } from '../../storage/failure-reason.ts';
import { type Finding, findingsOf } from './finding.ts';

const { fault, unavailable } = findingsOf('postgres');

/** Why Postgres did not carry out a query, and what to do about it. */
export function recordsFault(error: unknown): Finding {
  const reason = failureReason(error);
  return isPassing(error)
    ? unavailable(`Postgres does not respond: ${reason}.`, 'Start it, or correct DATABASE_URL.')
    : fault(`Postgres can not be used: ${reason}.`, 'Correct DATABASE_URL: user, password, database, TLS.');
}

/** The same in sentences; undefined for an error that is not about the store. */
export function explainUnavailability(error: unknown): string | undefined {
  if (!(error instanceof StoreUnavailable)) return undefined;
  const { finding, remedy } = recordsFault(error);
  return `${finding} ${remedy}`;
}
