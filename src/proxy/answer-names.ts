import { decidesHead } from '../http/line-response.ts';
import { HOP_BY_HOP_FIELDS } from './hop-by-hop.ts';
import { perName } from './per-name.ts';
import { RATE_LIMIT_FIELDS } from './rate-limit-headers.ts';

/** The names that say how an answer is read. */
export type FramingName = 'content-length' | 'transfer-encoding' | 'connection' | 'keep-alive';

/** What the name of an answer's field means here. */
export interface AnswerName {
  /** As it was sent. */
  readonly text: string;
  readonly lowerCase: string;
  readonly framing: FramingName | undefined;
  /** Never forwarded as it came: it ends here, or is ours to write. */
  readonly isReplaced: boolean;
  /** Ours to write for cross-origin callers that are allowed. A backend may expose more fields than we do. */
  readonly isCors: boolean;
  /** Decides how the answer to the client is written. */
  readonly isDecisive: boolean;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

const REPLACED: ReadonlySet<string> = new Set<string>([
  ...HOP_BY_HOP_FIELDS,
  ...RATE_LIMIT_FIELDS,
  'x-request-id',
]);

const CORS: ReadonlySet<string> = new Set([
  'access-control-allow-origin',
  'access-control-allow-credentials',
]);

/** Null for what is no name. */
export const answerName = perName((text): AnswerName | null => {
  if (!isToken(text)) return null;
  const lowerCase = text.toLowerCase();
  return {
    text,
    lowerCase,
    framing: framingName(lowerCase),
    isReplaced: REPLACED.has(lowerCase),
    isCors: CORS.has(lowerCase),
    isDecisive: decidesHead(lowerCase),
  };
});

/** Whether it may be a field's name (RFC 9110 section 5.6.2). */
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
