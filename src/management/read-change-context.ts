import { isUtf8 } from 'node:buffer';
import type { BlockList } from 'node:net';
import type { Request, Response } from 'express';
import { actorOf, type ChangeContext } from '../audit/change-context.ts';
import { TollgateError } from '../errors.ts';
import { clientAddress } from '../http/client-address.ts';
import type { RequestNotes } from '../http/with-request-id.ts';
import type { Clock } from '../platform/clock.ts';
import { principalOf } from './principal-of.ts';

/** Reads the context of a change from an authenticated request. */
export type ChangeContextReader = (req: Request, res: Response) => ChangeContext;

const LONGEST_REASON = 256;

interface ChangeOptions {
  readonly clock: Clock;
  readonly trustedProxies: BlockList;
}

/** The context of a change: who makes the request and why. A reason that `rejectLongReason` rejects is left out. */
export function readChangeContext(
  req: Request,
  res: Response,
  { clock, trustedProxies }: ChangeOptions,
): ChangeContext {
  const principal = principalOf(res);
  return {
    actor: actorOf(principal),
    atMs: clock.nowMs(),
    reason: shortReason(req) ?? null,
    requestId: (res.locals as RequestNotes).requestId,
    address: clientAddress(req, trustedProxies),
    onlyTags: principal.onlyTags,
    expects: undefined,
  };
}

/** Throws `bad_request` for a reason that is too long. */
export function rejectLongReason(req: Request): void {
  if (shortReason(req) !== undefined) return;
  throw new TollgateError(
    'bad_request',
    `The header X-Audit-Reason must have at most ${LONGEST_REASON} characters.`,
  );
}

/** Null if there is none, undefined if it is too long. */
function shortReason(req: Request): string | null | undefined {
  const header = req.get('X-Audit-Reason');
  if (header === undefined || header === '') return null;
  // Node decodes each byte of a header as one character, but clients send UTF-8.
  const bytes = Buffer.from(header, 'latin1');
  const reason = isUtf8(bytes) ? bytes.toString() : header;
  return [...reason].length <= LONGEST_REASON ? reason : undefined;
}
