import { isUtf8 } from 'node:buffer';
import type { BlockList } from 'node:net';
import type { Request, Response } from 'express';
import type { Principal } from '../admins/principal.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import { TollgateError } from '../errors.ts';
import { clientAddress } from '../http/client-address.ts';
import type { RequestNotes } from '../http/with-request-id.ts';
import type { Clock } from '../platform/clock.ts';
import type { Precondition } from '../platform/precondition.ts';

const LONGEST_REASON = 256;

interface ChangeOptions {
  readonly principal: Principal;
  readonly expects: Precondition | undefined;
  readonly clock: Clock;
  readonly trustedProxies: BlockList;
}

/** What the service of a change is told of the request that makes it. Throws `bad_request` for a reason that is too long. */
export function changeOfRequest(
  req: Request,
  res: Response,
  { principal, expects, clock, trustedProxies }: ChangeOptions,
): ChangeContext {
  const { type, adminTokenId, name, onlyTags } = principal;
  return {
    actor: { type, id: adminTokenId, name },
    atMs: clock.nowMs(),
    reason: readReason(req.get('X-Audit-Reason')),
    requestId: (res.locals as RequestNotes).requestId,
    address: clientAddress(req, trustedProxies),
    onlyTags,
    expects,
  };
}

function readReason(header: string | undefined): string | null {
  if (header === undefined || header === '') return null;
  // Node gives each byte of a header as one character; clients send UTF-8.
  const bytes = Buffer.from(header, 'latin1');
  const reason = isUtf8(bytes) ? bytes.toString() : header;
  if ([...reason].length <= LONGEST_REASON) return reason;
  throw new TollgateError(
    'bad_request',
    `The header X-Audit-Reason must have at most ${LONGEST_REASON} characters.`,
  );
}
