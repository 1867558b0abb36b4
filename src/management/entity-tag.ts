import type { IncomingMessage } from 'node:http';
import { readPreconditions } from '../http/preconditions.ts';
import type { Precondition, RecordState } from '../platform/precondition.ts';

/**
 * The strong entity tag of a key or a plan. It changes with what an administrator changes, not with usage, which moves by itself. One that
 * was deleted and made again has another tag.
 */
export function entityTag({ createdAtMs, version }: RecordState): string {
  return `"${createdAtMs.toString(36)}-${version.toString(36)}"`;
}

/** What `If-Match` and `If-None-Match` of a request demand of the record that it changes; undefined without either. Throws `bad_request`. */
export function readExpectation(req: IncomingMessage): Precondition | undefined {
  const condition = readPreconditions(req);
  if (condition === undefined) return undefined;
  return (present) => condition(present && entityTag(present));
}
