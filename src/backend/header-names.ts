import { memoizeByName } from './memoize-by-name.ts';

/** The names that say how a response is read. */
export type FramingName = 'content-length' | 'transfer-encoding' | 'connection' | 'keep-alive';

/** The name of a header. There is one object for each spelling, as long as it is memoized. */
export interface HeaderName {
  /** As it was sent. */
  readonly text: string;
  readonly lowerCase: string;
  readonly framing: FramingName | undefined;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Null for what is no name. */
export const headerName = memoizeByName((text): HeaderName | null => {
  if (!isToken(text)) return null;
  const lowerCase = text.toLowerCase();
  return { text, lowerCase, framing: framingName(lowerCase) };
});

/** Whether it may be the name of a header (RFC 9110 section 5.6.2). */
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
