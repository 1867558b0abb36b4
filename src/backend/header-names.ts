/** The headers that decide how a response is read. */
export type FramingName = 'content-length' | 'transfer-encoding' | 'connection' | 'keep-alive';

/** The name of a header. There is one object for each spelling, as long as it is memoized. */
export interface HeaderName {
  /** As it was sent. */
  readonly text: string;
  readonly lowerCase: string;
  readonly framing: FramingName | undefined;
}

/** Names remembered by each memoized function. */
const MOST_NAMES = 1000;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Null for text that is not a header name. */
export const headerName = memoizeByName((text): HeaderName | null => {
  if (!isToken(text)) return null;
  const lowerCase = text.toLowerCase();
  return { text, lowerCase, framing: framingName(lowerCase) };
});

/** Whether a text may be the name of a header (RFC 9110 section 5.6.2). */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

function framingName(lowerCase: string): FramingName | undefined {
  switch (lowerCase) {
    case 'content-length':
    case 'transfer-encoding':
    case 'connection':
    case 'keep-alive':
      return lowerCase;
  }
  return undefined;
}

/**
 * Memoizes a function of a header name: clients and backends use few names. The cache is bounded and is cleared when it is full. Its
 * keys are copies of the names, because a slice of a head would keep the whole head in memory.
 */
export function memoizeByName<T>(make: (name: string) => T): (name: string) => T {
  const known = new Map<string, T>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const copy = Buffer.from(name, 'latin1').toString('latin1');
    const made = make(copy);
    if (known.size === MOST_NAMES) known.clear();
    known.set(copy, made);
    return made;
  };
}
