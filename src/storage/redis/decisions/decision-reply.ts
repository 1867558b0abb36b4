/** The reply to one decision: the numbers of the whole reply, and where those of this decision begin. */
export interface DecisionReply {
  readonly numbers: readonly number[];
  /** Index of the decision's kind. */
  readonly at: number;
}

/** The kinds of decision in a reply of `decideRequests-n.lua`. */
export const STALE = 0;
export const ALLOWED = 1;
export const LIMITED = 2;
export const UNLIMITED = 3;
export const TOO_LATE = 4;

/** The server's time in milliseconds since 1970. */
export function serverTimeOf({ numbers }: DecisionReply): number {
  return numbers[0] ?? 0;
}

/** The numbers of a reply of the script; undefined for anything else. An array of numbers is returned as it is. */
export function readNumbers(reply: unknown): readonly number[] | undefined {
  if (typeof reply === 'string') return parseNumbers(reply);
  return areNumbers(reply) ? reply : undefined;
}

/** The index at which each decision of a reply begins, given the number of windows of each. Undefined if the reply has another form. */
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

const ZERO = 0x30;
const NINE = 0x39;
const MINUS = 0x2d;
const BLANK = 0x20;

/** Parses whole numbers separated by blanks, in one pass, because each decision waits for it. */
function parseNumbers(text: string): readonly number[] | undefined {
  const numbers: number[] = [];
  let sign = 1;
  let value = 0;
  let digits = 0;
  for (let i = 0; i <= text.length; i += 1) {
    const code = i === text.length ? BLANK : text.charCodeAt(i);
    if (code >= ZERO && code <= NINE) {
      value = value * 10 + (code - ZERO);
      digits += 1;
    } else if (code === BLANK && digits > 0) {
      numbers.push(sign * value);
      sign = 1;
      value = 0;
      digits = 0;
    } else if (code === MINUS && digits === 0 && sign === 1) {
      sign = -1;
    } else {
      return undefined;
    }
  }
  return numbers;
}

function areNumbers(items: unknown): items is readonly number[] {
  return Array.isArray(items) && items.every(Number.isFinite);
}
