/** Channel on which the id of each key whose record changed is published. */
export const CHANGES_CHANNEL = 'tg:changes';

/** Sorted set of the live replicas. */
export const REPLICAS_KEY = 'tg:replicas';

/** Shared version of a key's record. The braces are the hash tag: all that belongs to a key lies in one slot. */
export function versionKey(keyId: string): string {
  return `tg:{${keyId}}:version`;
}

/** Count of a key's open window. */
export function windowKey(keyId: string): string {
  return `tg:{${keyId}}:window`;
}

/** Token of the period that a key's open window has. */
export function periodKey(keyId: string): string {
  return `tg:{${keyId}}:period`;
}
