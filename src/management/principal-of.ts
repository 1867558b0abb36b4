import type { Response } from 'express';
import type { Principal } from '../admins/principal.ts';
import type { RequestNotes } from '../http/with-request-id.ts';

/** What is known of a request after its authentication, beside the notes for the log. */
interface AuthenticatedLocals extends RequestNotes {
  principal?: Principal;
}

export function notePrincipal(res: Response, principal: Principal): void {
  const locals = res.locals as AuthenticatedLocals;
  locals.principal = principal;
  locals.actor = principal.id ?? principal.name;
}

/** Throws for a request that passed no authentication: a fault of ours must not open an endpoint. */
export function principalOf(res: Response): Principal {
  const { principal } = res.locals as AuthenticatedLocals;
  if (principal === undefined) throw new Error('The request was not authenticated.');
  return principal;
}
