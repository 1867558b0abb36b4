/** Channel on which the id of each key whose record changed is published. */
export const CHANGES_CHANNEL = 'tg:changes';

/** Sorted set of the live replicas. */
export const REPLICAS_KEY = 'tg:replicas';

/** A live replica's description of itself, as JSON. */
export function replicaKey(replicaId: string): string {
  return `tg:replica:${replicaId}`;
}

/** Shared version of a key's record. The braces are the hash tag: everything that belongs to a key is in one slot. */
export function versionKey(keyId: string): string {
  return `tg:{${keyId}}:version`;
}

/** Units counted in an open window of a key, by the window's name (`Limit.windowName`, or `customerWindowName` of it). */
export function windowKey(keyId: string, windowName: string): string {
  return `tg:{${keyId}}:window:${windowName}`;
}

/** Units granted in an open window beyond its limit. */
export function grantedKey(keyId: string, windowName: string): string {
  return `tg:{${keyId}}:granted:${windowName}`;
}

/** Set of the windows that an operation, by its id, has changed already. */
export function operationKey(keyId: string, operationId: string): string {
  return `tg:{${keyId}}:operation:${operationId}`;
}

/** Sorted set of the names of the open windows of a key's customers, by their end. */
export function customersKey(keyId: string): string {
  return `tg:{${keyId}}:customers`;
}
