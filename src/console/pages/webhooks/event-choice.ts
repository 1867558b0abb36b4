import { EVENT_TYPES, type EventType, type EventTypeRow, TEST_TYPE } from '../../../events/event-types.ts';
import type { Scope } from '../../api/api-context.tsx';

/** Selects all types of events. */
export const EVERYTHING = 'tollgate.*';

/** A type of event that a webhook can have. */
interface ChoosableType extends EventTypeRow {
  readonly type: EventType;
}

/** Types of events about one thing. */
export interface TypeGroup {
  /** "Key". */
  readonly name: string;
  /** Selects all of them: `tollgate.key.*`. */
  readonly pattern: string;
  readonly types: readonly ChoosableType[];
}

const CHOOSABLE: readonly ChoosableType[] = (Object.keys(EVENT_TYPES) as EventType[])
  .filter((type) => type !== TEST_TYPE)
  .map((type) => ({ type, ...EVENT_TYPES[type] }));

/** All types that can be chosen, by what they are about, in the order of the gateway's table. */
const TYPE_GROUPS: readonly TypeGroup[] = [...Map.groupBy(CHOOSABLE, ({ type }) => groupOf(type))].map(
  ([group, types]) => ({
    name: capitalized(group.replaceAll('_', ' ')),
    pattern: `tollgate.${group}.*`,
    types,
  }),
);

/** The scopes that a token needs to hear all events of the patterns. */
export function scopesOf(patterns: readonly string[]): readonly Scope[] {
  const types = CHOOSABLE.filter(({ type }) => patterns.some((each) => each === type || covers(each, type)));
  return [...new Set(types.map(({ scope }) => scope))];
}

/** The groups with the types that a token may hear. A group of which it may hear nothing is left out. */
export function hearableGroups(can: (scope: Scope) => boolean): readonly TypeGroup[] {
  return TYPE_GROUPS.map((group) => ({
    ...group,
    types: group.types.filter(({ scope }) => can(scope)),
  })).filter(({ types }) => types.length > 0);
}

/** The patterns after one was chosen, or not any more. What a chosen pattern selects is not listed beside it. */
export function toggled(patterns: readonly string[], pattern: string, isChosen: boolean): readonly string[] {
  const others = patterns.filter((each) => each !== pattern);
  if (!isChosen) return others;
  return [...others.filter((each) => !covers(pattern, each)), pattern];
}

/** Whether `wide`, the beginning of types with `*` at its end, selects all that `narrow` does. A single type covers nothing. */
export function covers(wide: string, narrow: string): boolean {
  return wide.endsWith('*') && narrow.startsWith(wide.slice(0, -1));
}

/** Patterns that the picker has no box for: written by a program. */
export function otherPatterns(patterns: readonly string[]): readonly string[] {
  const boxes = new Set<string>([
    EVERYTHING,
    ...TYPE_GROUPS.map(({ pattern }) => pattern),
    ...CHOOSABLE.map(({ type }) => type),
  ]);
  return patterns.filter((pattern) => !boxes.has(pattern));
}

function groupOf(type: string): string {
  return type.split('.')[1] ?? type;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
