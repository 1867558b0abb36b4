import { isObject } from '../../../platform/is-object.ts';
import { isoSeconds } from '../../../platform/timestamps.ts';
import { CommandFault } from '../../command-fault.ts';

/** A limit of another gateway. */
export interface ForeignLimit {
  readonly limit: number;
  /** In the form of a plan's `period`. */
  readonly period: string;
  /** What the other gateway calls it. */
  readonly name?: string;
}

/** A key of another gateway. */
export interface ForeignKey {
  readonly name: string;
  /** The secret itself, or its SHA-256 digest. */
  readonly secret: { readonly text: string } | { readonly sha256: string };
  /** The first one becomes the limit of its plan, the others the additional limits; none: the default plan. */
  readonly limits: readonly ForeignLimit[];
  readonly externalId?: string;
  readonly tags?: readonly string[];
  readonly enabled?: boolean;
  /** An instant as the interface writes it. */
  readonly expiresAt?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Something that an import leaves out, for its report. */
export interface LeftOut {
  /** Its kind: `key` is a key that should have been imported. */
  readonly what: string;
  readonly name: string;
  readonly reason: string;
}

/** The keys of another gateway, and what of it has no counterpart here. */
export interface ForeignKeys {
  readonly keys: readonly ForeignKey[];
  readonly leftOut: readonly LeftOut[];
}

/** An object of a file. */
export type Entity = Readonly<Record<string, unknown>>;

/** Notes something of a key that an import leaves out. */
export type Leave = (what: LeftOut['what'], reason: string) => void;

/** The object that a value of a file is; empty where it is none. */
export function objectOf(value: unknown): Entity {
  return isObject(value) ? value : {};
}

/** The objects in a list of a file; none where it is no list. */
export function objectsOf(value: unknown): readonly Entity[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

/** The text that a value of a file is; a number counts as its digits, an empty text as none. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}

/** The texts in lists of a file. */
export function textsOf(...lists: readonly unknown[]): readonly string[] {
  return lists.flatMap((list) => (Array.isArray(list) ? list : [])).flatMap((value) => textOf(value) ?? []);
}

/** The instant as the interface writes it, without fractions of a second. Throws a `CommandFault` for one past the year 9999. */
export function instant(ms: number): string {
  if (!(ms <= LAST_INSTANT_MS))
    throw new CommandFault(
      'usage',
      `The file has a key that expires at ${ms} ms since 1970, which is no date.`,
    );
  return isoSeconds(ms);
}

const LAST_INSTANT_MS = Date.UTC(9999, 11, 31);
