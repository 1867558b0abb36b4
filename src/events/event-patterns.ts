import type { Principal } from '../permissions/principal.ts';
import type { Scope } from '../permissions/scopes.ts';
import { isVisible } from '../permissions/visible-records.ts';
import { nameHint, shownName } from '../platform/text/did-you-mean.ts';
import { EVENT_TYPES, type EventType, TEST_TYPE } from './event-types.ts';

/** The types that can be subscribed to. */
export const HEARD_TYPES = (Object.keys(EVENT_TYPES) as EventType[]).filter((type) => type !== TEST_TYPE);

/** Whether a pattern, a type or the beginning of types with `*` at its end, selects a type. */
function selects(pattern: string, type: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
}

/** For a pattern that selects no known type: a sentence with the nearest one. Otherwise undefined. */
export function patternFault(pattern: string): string | undefined {
  if (HEARD_TYPES.some((type) => selects(pattern, type))) return undefined;
  return `The event type "${shownName(pattern)}" is unknown. ${nameHint(pattern, HEARD_TYPES)}`;
}

/** The scopes that are needed to hear all events of the patterns. */
export function scopesOf(patterns: readonly string[]): readonly Scope[] {
  const types = HEARD_TYPES.filter((type) => patterns.some((pattern) => selects(pattern, type)));
  return [...new Set(types.map((type) => EVENT_TYPES[type].scope))];
}

/** The types that a principal may hear. */
export function typesHeardBy({ scopes }: Pick<Principal, 'scopes'>): readonly EventType[] {
  return (Object.keys(EVENT_TYPES) as EventType[]).filter((type) => scopes.has(EVENT_TYPES[type].scope));
}

/** What a webhook or a stream wants to hear. */
export interface Subscription {
  readonly events: readonly string[];
  /** Only events about records with all of these tags; empty: all events. */
  readonly onlyTags: readonly string[];
}

/** Whether a subscription covers an event. */
export function hears(
  { events, onlyTags }: Subscription,
  { type, tags }: { readonly type: string; readonly tags: readonly string[] },
): boolean {
  return events.some((pattern) => selects(pattern, type)) && isVisible(tags, onlyTags);
}
