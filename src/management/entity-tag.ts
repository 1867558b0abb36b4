import type { IncomingMessage } from 'node:http';
import { readPreconditions } from '../http/preconditions.ts';
import type { Precondition, RecordState } from '../platform/precondition.ts';

/**
 * The strong entity tag of a key or a plan. It changes when an administrator changes the record, not with usage. A record that was deleted
 * and created again has another tag.
 */
export function entityTag({ createdAtMs, version }: RecordState): string {
  return `"${createdAtMs.toString(36)}-${version.toString(36)}"`;
}

/** The precondition in `If-Match` and `If-None-Match`; undefined without either. Throws `bad_request`. */
export function readExpectation(req: IncomingMessage): Precondition | undefined {
  const condition = readPreconditions(req);
  if (condition === undefined) return undefined;
  return (present) => condition(present && entityTag(present));
}
