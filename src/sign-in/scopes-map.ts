import { isTag } from '../keys/key-tags.ts';
import type { Grant } from '../permissions/principal.ts';
import { expandScopes, PRESETS, type Preset, SCOPES, type Scope } from '../permissions/scopes.ts';
import { MAX_TAGS } from '../permissions/visible-records.ts';
import { isObject } from '../platform/is-object.ts';

/** What each value of a claim grants, in the order in which the map names them. */
export type ScopesMap = ReadonlyMap<string, Grant>;

/** Stands for all scopes, in a map only. */
const ALL = 'all';
const MAX_VALUES = 1000;

/** Reads the JSON of a map. Throws an `Error` whose message says what is wrong and never repeats the text. */
export function parseScopesMap(text: string): ScopesMap {
  const map = parsedObject(text);
  const values = namesIn(text);
  if (values.length > MAX_VALUES) throw new Error(`must have at most ${MAX_VALUES} values`);
  return new Map(values.map((value, index) => [value, grantIn(map[value], index + 1)]));
}

/** The names of a JSON object, each once, in the order of the text: those of a parsed object have whole numbers first. */
function namesIn(json: string): readonly string[] {
  const names = new Set<string>();
  let depth = 0;
  let latest = '';
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:]/g)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (token === ':' && depth === 1) names.add(JSON.parse(latest));
    else latest = token;
  }
  return [...names];
}

function parsedObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('must be JSON');
  }
  if (isObject(value) && Object.keys(value).length > 0) return value;
  throw new Error('must be a JSON object like {"gateway-admins": ["all"]}');
}

function grantIn(granted: unknown, place: number): Grant {
  const {
    scopes,
    onlyTags = [],
    ...others
  } = Array.isArray(granted) ? { scopes: granted } : isObject(granted) ? granted : {};
  if (!Array.isArray(scopes) || scopes.length === 0 || !scopes.every(isGrantable))
    throw new Error(
      `value ${place} must grant a list of ${[ALL, ...Object.keys(PRESETS), ...SCOPES].join(', ')}`,
    );
  if (!Array.isArray(onlyTags) || onlyTags.length > MAX_TAGS || !onlyTags.every(isTag))
    throw new Error(`value ${place}: "onlyTags" must be a list of at most ${MAX_TAGS} tags`);
  if (Object.keys(others).length > 0) throw new Error(`value ${place} may have only "scopes" and "onlyTags"`);
  const named = scopes.flatMap((name): readonly (Scope | Preset)[] => (name === ALL ? SCOPES : [name]));
  return { scopes: expandScopes(named), onlyTags: [...new Set(onlyTags)].sort() };
}

function isGrantable(name: unknown): name is Scope | Preset | typeof ALL {
  return (
    typeof name === 'string' &&
    (name === ALL || Object.hasOwn(PRESETS, name) || SCOPES.some((scope) => scope === name))
  );
}

/**
 * What several values of a claim grant together; undefined if the map has none of them. Scopes for some keys only never become scopes for
 * all: values without tags are united, and others count only if there are none, and then only those with the tags of the first one in the
 * map.
 */
export function grantOf(map: ScopesMap, values: readonly string[]): Grant | undefined {
  const present = new Set(values);
  const met = [...map].filter(([value]) => present.has(value)).map(([, grant]) => grant);
  const first = met.find(({ onlyTags }) => onlyTags.length === 0) ?? met[0];
  if (first === undefined) return undefined;
  const tags = first.onlyTags.join();
  const united = met.filter(({ onlyTags }) => onlyTags.join() === tags);
  return { scopes: expandScopes(united.flatMap(({ scopes }) => scopes)), onlyTags: first.onlyTags };
}
