/** The reply to one decision: the numbers of the whole reply, and where those of this decision begin. */
export interface DecisionReply {
  readonly numbers: readonly number[];
  /** Index of the decision's kind. */
  readonly at: number;
}

/** The kinds of `decideRequests-n.lua`. */
export const STALE = 0;
export const ALLOWED = 1;
export const LIMITED = 2;
export const UNLIMITED = 3;
export const TOO_LATE = 4;

/** The server's time in milliseconds since 1970. */
export function serverTimeOf({ numbers }: DecisionReply): number {
  return numbers[0] ?? 0;
}

/** The numbers of a reply of the script; undefined for anything else. Numbers that were read already pass as they are. */
export function readNumbers(reply: unknown): readonly number[] | undefined {
  const numbers = typeof reply === 'string' ? reply.split(' ').map(Number) : reply;
  return areNumbers(numbers) ? numbers : undefined;
}

/** Where the decisions of a reply begin, by the number of windows that each asked for; undefined when the reply has another form. */
export function placesOf(
  numbers: readonly number[],
  windows: readonly number[],
): readonly number[] | undefined {
  const places: number[] = [];
  let at = 1;
  for (const count of windows) {
    const kind = numbers[at];
    places.push(at);
    at += kind === ALLOWED || kind === LIMITED ? 2 + 2 * count : 1;
  }
  return at === numbers.length ? places : undefined;
}

function areNumbers(items: unknown): items is readonly number[] {
  return Array.isArray(items) && items.every(Number.isFinite);
}
