import { headerValue, type ResponseHead } from '../../backend/response-head.ts';

/** In which a backend says what a request did cost. Lower case. It never reaches the client. */
export const COST_HEADER = 'tollgate-cost';

/** What a head says; undefined when it says nothing. Said twice, it is the two values with a comma, which is no cost. */
export function reportedCostOf({ names, lines }: ResponseHead): string | undefined {
  const values = names.flatMap((name, i) =>
    name.lowerCase === COST_HEADER ? [headerValue(name, lines[i] ?? '')] : [],
  );
  return values.length === 0 ? undefined : values.join(',');
}

/** What a trailer line says; undefined when it is about something else. */
export function reportedCostInTrailer(line: string): string | undefined {
  const colon = line.indexOf(':');
  return line.slice(0, colon).toLowerCase() === COST_HEADER ? line.slice(colon + 1).trim() : undefined;
}
