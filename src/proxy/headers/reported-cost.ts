import { headerValue, type ResponseHead } from '../../backend/response-head.ts';

/** The header by which a backend reports the cost of a request. Lower case. It never reaches the client. */
export const COST_HEADER = 'tollgate-cost';

/** The cost in a response head; undefined when there is none. Repeated headers are joined with a comma, which makes the cost invalid. */
export function reportedCostOf({ names, lines }: ResponseHead): string | undefined {
  const values = names.flatMap((name, i) =>
    name.lowerCase === COST_HEADER ? [headerValue(name, lines[i] ?? '')] : [],
  );
  return values.length === 0 ? undefined : values.join(',');
}

/** The cost in a trailer line; undefined for another trailer. */
export function reportedCostInTrailer(line: string): string | undefined {
  const colon = line.indexOf(':');
  return line.slice(0, colon).toLowerCase() === COST_HEADER ? line.slice(colon + 1).trim() : undefined;
}
