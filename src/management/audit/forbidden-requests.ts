import type { ErrorRequestHandler, Request } from 'express';
import type { AuditLog } from '../../audit/audit-log.ts';
import type { ChangeContext } from '../../audit/change-context.ts';
import { type ErrorCode, TollgateError } from '../../errors.ts';
import { errorResponse } from '../../http/errors/error-responses.ts';
import type { Endpoint } from '../endpoint.ts';
import type { ChangeContextReader } from '../read-change-context.ts';

/** Where an admin token comes from an address from which it may not be used, or the cookie of a session with the request of another page. */
const IS_OF_OTHERS: ReadonlySet<ErrorCode> = new Set(['address_not_allowed', 'origin_not_allowed']);

/**
 * The time for which one entry stands for all rejections of consumers, who are many and not trusted, and of others who make requests with
 * the credential of an administrator: with an entry for each rejection they would fill the log.
 */
const REPEATED_MS = 3_600_000;
/** Entries of an admin token in that time, for each code: a script that repeats a rejected request must not fill the log either. */
const MOST_OF_ADMIN = 100;

/**
 * Writes an entry into the audit log for each request of a principal that is rejected with 403, and passes the error on. In an hour it
 * writes about one of a consumer and of an admin token at a wrong address, and 100 of any other admin token.
 */
export function auditForbidden(
  { operationId }: Endpoint,
  { audit, changeOf }: { readonly audit: AuditLog; readonly changeOf: ChangeContextReader },
): ErrorRequestHandler {
  return async (error: unknown, req, res, _next) => {
    if (error instanceof TollgateError && errorResponse(error).status === 403) {
      const target = { type: 'operation', id: operationId, name: pathParameter(req), tags: [] } as const;
      const action = { action: 'request.deny', target, changes: {}, outcome: error.code } as const;
      const change = changeOf(req, res);
      if (!(await isRepeated(audit, change, error.code))) await audit.record(action, change);
    }
    throw error;
  };
}

async function isRepeated(
  audit: AuditLog,
  { actor, atMs }: ChangeContext,
  outcome: ErrorCode,
): Promise<boolean> {
  if (actor.id === null) return false;
  const most = actor.type === 'key' || IS_OF_OTHERS.has(outcome) ? 1 : MOST_OF_ADMIN;
  const fromMs = atMs - REPEATED_MS;
  return (await audit.count({ action: 'request.deny', actorId: actor.id, outcome, fromMs })) >= most;
}

/** The ids that the gateway makes. */
const MADE_ID = /^[a-z]{3}_[0-9A-HJKMNP-TV-Z]{26}$/;
/** The ids of plans that are shorter than root tokens and secrets that the gateway takes. */
const SHORT_PLAN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,22}$/;

/** The id in the path. Null for other text: it may be a secret that was sent in the wrong place, and must not stay in the audit log. */
function pathParameter({ params }: Request): string | null {
  const [[name, text] = ['', '']] = Object.entries(params);
  const mayBeId = name === 'rateLimitId' ? SHORT_PLAN_ID : MADE_ID;
  return typeof text === 'string' && mayBeId.test(text) ? text : null;
}
