import type { PathCase } from './path-readings.ts';

/** Characters that only an escape can give a literal segment: they would be wildcards, end the path, or begin another escape. */
const KEPT_ESCAPE = /%(?:25|2A|23|3F|7B|7D|[01].|20|7F|[89A-F].)/;
const ESCAPE = /%[0-9A-Fa-f]{2}/g;
const ESCAPE_OR_CAPITALS = /%..|[A-Z]+/g;

/**
 * A well-formed path pattern in the form in which it is compared and stored: literal segments percent-decoded, with `%2F` as a slash, and
 * in lower case unless case matters. What a pattern can't have otherwise stays percent-encoded, in capitals. Wildcards are unchanged, and
 * so is a slash at the end.
 */
export function canonicalPattern(path: string, pathCase: PathCase): string {
  const canonical = (segment: string) =>
    isWildcard(segment) ? segment : canonicalLiteral(segment, pathCase);
  return path.split('/').map(canonical).join('/');
}

/**
 * Why a canonical pattern matches no canonical path, to follow "the pattern"; undefined if it may match one. Never contains the pattern.
 */
export function canonicalFault(pattern: string): string | undefined {
  const segments = pattern.split('/').slice(1);
  const literals = segments.filter((segment) => !isWildcard(segment));
  if (literals.some((segment) => segment.includes(';')))
    return 'has parameters (";"), which are removed before paths are compared';
  if (segments.slice(0, -1).includes('')) return 'has an empty segment ("//")';
  if (literals.includes('.') || literals.includes('..'))
    return 'has a "." or ".." segment, which no request can have';
  if (literals.some((segment) => /\\|%(?:[01].|7F)/.test(segment)))
    return 'has a backslash or a control character, which no request can have';
  return undefined;
}

/** The nearest pattern without parameters and empty segments. */
export function nearestCanonical(pattern: string): string {
  const segments = pattern
    .split('/')
    .map((segment) => (isWildcard(segment) ? segment : segment.replace(/;.*/, '')));
  return segments.join('/').replaceAll(/\/{2,}/g, '/');
}

function isWildcard(segment: string): boolean {
  return segment === '*' || segment === '**' || segment.startsWith('{');
}

function canonicalLiteral(segment: string, pathCase: PathCase): string {
  const decoded = segment.replaceAll(ESCAPE, (encoded) => {
    const capitals = encoded.toUpperCase();
    return KEPT_ESCAPE.test(capitals) ? capitals : decodeURIComponent(encoded);
  });
  if (pathCase === 'sensitive') return decoded;
  return decoded.replaceAll(ESCAPE_OR_CAPITALS, (part) => (part.startsWith('%') ? part : part.toLowerCase()));
}
