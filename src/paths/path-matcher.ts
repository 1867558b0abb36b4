// The room `paths`: paths of requests, which of them are reserved, and the patterns that match them.
// In: a path as the client wrote it, and the patterns of plans.
// Out: whether they match in any reading of the path, and whether the path belongs to the gateway. `path-readings.ts` normalises paths.

import { ANY_SEGMENT, methodsFault, type PathPattern, parsePathPattern } from './path-pattern.ts';
import type { PathCase } from './path-readings.ts';

/** Paths of the management interface: they and all paths below them are never proxied. */
const RESERVED_PATHS = ['/consumer-api-key', '/rate-limit', '/api-keys', '/tollgate'] as const;

/** The default path of self-service, which is for consumers although it is below a reserved prefix. */
export const SELF_SERVICE_PATH = '/tollgate/self';

/** The path of the consumers' portal, on the public port. */
export const PORTAL_PATH = '/tollgate/portal';

/** The path at which the port for other gateways and services verifies secrets. It is like any other elsewhere. */
export const VERIFY_PATH = '/verify';
/** Where the management interface does the same, for the console and the command. */
export const MANAGED_VERIFY_PATH = '/api-keys/verify';

/** Whether `path` (no query) is reserved for the management interface. */
export function isReserved(path: string): boolean {
  return isAtOrBelowAny(path, RESERVED_PATHS);
}

/** Whether `path` (no query) is one of the prefixes or below it. */
export function isAtOrBelowAny(path: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => isAtOrBelow(path, prefix));
}

/** Whether `path` (no query) is the prefix or below it. The comparison is literal and case-sensitive. */
export function isAtOrBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}

/**
 * The management path that `path` (no query) was probably meant to be: a reserved prefix in singular or plural or another case, or the path
 * of a key below the plural. Undefined if it resembles none.
 */
export function resembledManagementPath(path: string): string | undefined {
  if (path.startsWith('/api-keys/key_')) return '/consumer-api-key/{consumerApiKeyId}';
  if (isReserved(path)) return undefined;
  const [, first = ''] = path.split('/', 2);
  const name = inSingular(`/${first.toLowerCase()}`);
  return RESERVED_PATHS.find((prefix) => inSingular(prefix) === name);
}

function inSingular(prefix: string): string {
  return prefix.replace(/s$/, '');
}

/** A pattern and its value. */
export interface PatternEntry<Value> {
  readonly pattern: PathPattern;
  readonly value: Value;
}

/** A pattern that ends at a node; `position` is its place in the list. */
interface Ending<Value> {
  readonly position: number;
  readonly methods: ReadonlySet<string> | undefined;
  readonly value: Value;
}

/** All patterns that begin with the same segments. */
interface Node<Value> {
  /** The position of the first pattern in the list that is at or below this node. */
  readonly first: number;
  readonly literals: Map<string, Node<Value>>;
  longestLiteral: number;
  /** The first of the literals. */
  literal: string;
  any: Node<Value> | undefined;
  /** Patterns that end here, and patterns that end here with `**`, in the order of the list. */
  readonly endings: Ending<Value>[];
  readonly rests: Ending<Value>[];
}

/**
 * A list of patterns of which the first that matches applies. Patterns are compared in their canonical form, paths as they are. The matcher
 * makes a tree of segments from the patterns. A match visits each node at most once, and reads only as many segments of the path as its
 * deepest pattern has, so that no path can make it slow.
 */
export class PathMatcher<Value> {
  readonly #root: Node<Value> = createNode(0);
  readonly #pathCase: PathCase;

  /** Throws an `Error` with the fault of a malformed pattern. */
  constructor(entries: readonly PatternEntry<Value>[], pathCase: PathCase) {
    this.#pathCase = pathCase;
    for (const [position, entry] of entries.entries()) this.#add(entry, position);
  }

  /** The value of the first pattern that matches; undefined if none does. `path` has no query. */
  match(method: string, path: string): Value | undefined {
    return path.startsWith('/') ? find(this.#root, method, path, 1, undefined)?.value : undefined;
  }

  /** The same for the first of several readings of a path that any pattern matches: the path itself, then `others`. */
  matchAny(method: string, path: string, others: readonly string[]): Value | undefined {
    const value = this.match(method, path);
    if (value !== undefined) return value;
    for (const other of others) {
      const found = this.match(method, other);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #add({ pattern: { path, methods }, value }: PatternEntry<Value>, position: number): void {
    const fault = methods && methodsFault(methods);
    if (fault !== undefined) throw new Error(`the pattern ${fault}`);
    const { segments, hasRest, hasSlash } = parsePathPattern(path, this.#pathCase);
    let node = this.#root;
    for (const segment of segments) node = childOf(node, segment, position);
    const ending = { position, methods: methods && methodSet(methods), value };
    (hasRest ? node.rests : node.endings).push(ending);
    if (hasSlash) childOf(node, '', position).endings.push(ending);
  }
}

/** A backend handles HEAD as GET. */
function methodSet(methods: readonly string[]): ReadonlySet<string> {
  return new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods);
}

function createNode<Value>(first: number): Node<Value> {
  return {
    first,
    literals: new Map(),
    longestLiteral: 0,
    literal: '',
    any: undefined,
    endings: [],
    rests: [],
  };
}

function childOf<Value>(
  node: Node<Value>,
  segment: string | typeof ANY_SEGMENT,
  position: number,
): Node<Value> {
  if (segment === ANY_SEGMENT) {
    node.any ??= createNode(position);
    return node.any;
  }
  const known = node.literals.get(segment);
  if (known !== undefined) return known;
  const created = createNode<Value>(position);
  if (node.literals.size === 0) node.literal = segment;
  node.literals.set(segment, created);
  node.longestLiteral = Math.max(node.longestLiteral, segment.length);
  return created;
}

/**
 * The first ending at or below a node that comes before `best` in the list, or else `best`. `start` is where the path's next segment
 * begins; beyond the path's end there is none. The parameters are positional because an options object for each node would be garbage.
 */
function find<Value>(
  node: Node<Value>,
  method: string,
  path: string,
  start: number,
  best: Ending<Value> | undefined,
): Ending<Value> | undefined {
  if (best !== undefined && node.first > best.position) return best;
  let found = earlier(node.rests, method, best);
  if (start > path.length) return earlier(node.endings, method, found);
  if (node.any === undefined && node.longestLiteral === 0 && node.literals.size === 0) return found;
  const slash = path.indexOf('/', start);
  const end = slash === -1 ? path.length : slash;
  if (end - start <= node.longestLiteral) {
    const next = literalChild(node, path, start, end);
    if (next !== undefined) found = find(next, method, path, end + 1, found);
  }
  if (node.any !== undefined && end > start) found = find(node.any, method, path, end + 1, found);
  return found;
}

/** Most nodes have one literal: to compare it in place takes no copy of the segment. */
function literalChild<Value>(
  node: Node<Value>,
  path: string,
  start: number,
  end: number,
): Node<Value> | undefined {
  if (node.literals.size > 1) return node.literals.get(path.slice(start, end));
  const isLiteral = node.literal.length === end - start && path.startsWith(node.literal, start);
  return isLiteral ? node.literals.get(node.literal) : undefined;
}

function earlier<Value>(
  endings: readonly Ending<Value>[],
  method: string,
  best: Ending<Value> | undefined,
): Ending<Value> | undefined {
  for (const ending of endings) {
    if (best !== undefined && ending.position > best.position) return best;
    if (ending.methods === undefined || ending.methods.has(method)) return ending;
  }
  return best;
}
