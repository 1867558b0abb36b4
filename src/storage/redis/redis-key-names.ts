/** Channel on which the id of each key whose record changed is published. */
export const CHANGES_CHANNEL = 'tg:changes';

/** Sorted set of the live replicas. */
export const REPLICAS_KEY_NAME = 'tg:replicas';

/** A live replica's description of itself, as JSON. */
export function replicaKeyName(replicaId: string): string {
  return `tg:replica:${replicaId}`;
}

/** Shared version of a key's record. The braces are the hash tag: everything that belongs to a key is in one slot. */
export function versionKeyName(keyId: string): string {
  return `tg:{${keyId}}:version`;
}

/** Units counted in an open window of a key, by the window's name (`Limit.windowName`, or `customerWindowName` of it). */
export function windowKeyName(keyId: string, windowName: string): string {
  return `tg:{${keyId}}:window:${windowName}`;
}

/** Units granted in an open window beyond its limit. */
export function grantedKeyName(keyId: string, windowName: string): string {
  return `tg:{${keyId}}:granted:${windowName}`;
}

/** When open windows of a key were last closed by a reset. It is kept until they would have ended. */
export function closedKeyName(keyId: string): string {
  return `tg:{${keyId}}:closed`;
}

/** Hash of the thresholds that an open window has passed. */
export function passedKeyName(keyId: string, windowName: string): string {
  return `tg:{${keyId}}:passed:${windowName}`;
}

/** Set of the windows that an operation, by its id, has changed already. */
export function operationKeyName(keyId: string, operationId: string): string {
  return `tg:{${keyId}}:operation:${operationId}`;
}

/** Sorted set of the names of the open windows of a key's customers, by their end. */
export function customersKeyName(keyId: string): string {
  return `tg:{${keyId}}:customers`;
}
