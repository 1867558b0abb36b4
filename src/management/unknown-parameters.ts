import type { ParsedUrlQuery } from 'node:querystring';
import { TollgateError } from '../errors.ts';
import { nameHint, shownName } from '../platform/nearest-name.ts';

/** Throws `invalid_parameter` for a query parameter that the endpoint does not know, with the nearest known name where one is near. */
export function rejectUnknownParameters(query: ParsedUrlQuery, known: readonly string[]): void {
  const unknown = Object.keys(query).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const hint = known.length === 0 ? 'This endpoint takes none.' : nameHint(unknown, known);
  throw new TollgateError(
    'invalid_parameter',
    `The query parameter "${shownName(unknown)}" is unknown. ${hint}`,
  );
}
