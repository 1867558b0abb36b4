import type { Response } from 'express';
import type { RequestNotes } from '../http/with-request-id.ts';
import type { Principal } from '../permissions/principal.ts';

/** The notes for the log, and the principal once the request is authenticated. */
interface AuthenticatedLocals extends RequestNotes {
  principal?: Principal;
}

export function notePrincipal(res: Response, principal: Principal): void {
  const locals = res.locals as AuthenticatedLocals;
  locals.principal = principal;
  locals.actor = principal.id ?? principal.name;
}

/** Throws if the request was not authenticated: a mistake in the wiring must not open an endpoint. */
export function principalOf(res: Response): Principal {
  const { principal } = res.locals as AuthenticatedLocals;
  if (principal === undefined) throw new Error('The request was not authenticated.');
  return principal;
}
