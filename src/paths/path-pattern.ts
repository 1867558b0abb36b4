import { canonicalFault, canonicalPattern } from './canonical-pattern.ts';
import { type PathCase, readSegment } from './path-readings.ts';

/** The pattern of a path, and the methods that it applies to. */
export interface PathPattern {
  /**
   * Segments, each literal, or `*` or `{name}` for any one segment that is not empty. `**` as the last segment matches the rest of the path,
   * or nothing. A slash at the end is optional in paths.
   */
  readonly path: string;
  /** In upper case, as requests send them. Missing: any method. `GET` includes `HEAD`. */
  readonly methods?: readonly string[];
}

/** Matches any one segment. */
export const ANY_SEGMENT = Symbol('any segment');

/** The segments of a valid path pattern, without the `**` or the slash at its end. */
export interface PathSegments {
  readonly segments: readonly (string | typeof ANY_SEGMENT)[];
  readonly hasRest: boolean;
  readonly hasSlash: boolean;
}

/** The longest path of a pattern, in characters: the name of an endpoint in the statistics has at most as many bytes. */
export const MAX_PATTERN_LENGTH = 256;

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Z-]{1,64}$/;
/** Visible ASCII. All other characters of a path arrive percent-encoded. */
const VISIBLE = /^[\x21-\x7e]*$/;
const BAD_PERCENT = /%(?![0-9A-Fa-f]{2})/;
const PARAMETER = /^\{[^{}]+\}$/;

/** The fault of a path pattern, to follow "the pattern"; undefined if it is valid. Never contains the pattern. */
export function pathPatternFault(path: string): string | undefined {
  if (!path.startsWith('/')) return 'must begin with "/"';
  if (path.length > MAX_PATTERN_LENGTH) return `must have at most ${MAX_PATTERN_LENGTH} characters`;
  if (path.includes('?')) return 'must not have a query: only the path is matched';
  if (path.includes('#')) return 'must not have a fragment';
  if (!VISIBLE.test(path)) return 'must be visible ASCII: percent-encode everything else, as requests do';
  if (BAD_PERCENT.test(path)) return 'has a "%" that is not followed by two hexadecimal digits';
  const segments = path.split('/').slice(1);
  return segments.map((segment, index) => segmentFault(segment, index === segments.length - 1)).find(Boolean);
}

/** The fault of a pattern's methods, to follow "the pattern"; undefined if they are valid. */
export function methodsFault(methods: readonly string[]): string | undefined {
  if (methods.length === 0) return 'must name at least one method, or leave "methods" out for all';
  const wrong = methods.some((method) => !METHOD.test(method));
  return wrong ? 'must name methods in upper case, like "GET"' : undefined;
}

/**
 * Parses a path pattern. Throws an `Error` with its fault as the message. A pattern without a canonical form, as only plans of earlier
 * versions have, is compared as it is.
 */
export function parsePathPattern(path: string, pathCase: PathCase): PathSegments {
  const fault = pathPatternFault(path);
  if (fault !== undefined) throw new Error(`the pattern ${fault}`);
  const canonical = canonicalPattern(path, pathCase);
  const isComparedAsIs = canonicalFault(canonical) !== undefined;
  const parts = (isComparedAsIs ? path : canonical).split('/').slice(1);
  const last = parts.at(-1);
  const hasRest = last === '**';
  const hasSlash = last === '' && parts.length > 1;
  const segments = (hasRest || hasSlash ? parts.slice(0, -1) : parts).map((part) => {
    if (part === '*' || part.startsWith('{')) return ANY_SEGMENT;
    return isComparedAsIs ? part : readSegment(part, pathCase);
  });
  return { segments, hasRest, hasSlash };
}

function segmentFault(segment: string, isLast: boolean): string | undefined {
  if (segment === '**')
    return isLast ? undefined : 'has "**" before its end: only the last segment may be "**"';
  if (segment === '*' || PARAMETER.test(segment)) return undefined;
  if (segment === '.' || segment === '..') return 'has a "." or ".." segment, which no request can have';
  if (segment.includes('*')) return 'has a "*" inside a segment: it stands for a whole segment';
  if (/[{}]/.test(segment)) return 'has a "{" or "}" inside a segment: "{name}" stands for a whole segment';
  return undefined;
}
