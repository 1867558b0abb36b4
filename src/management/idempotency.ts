import type { Request, Response } from 'express';
import { TollgateError } from '../errors.ts';
import { type FailedRequest, failureOf } from '../http/errors/error-responses.ts';
import type { IdempotentRequests, KeptResponse } from '../idempotency/idempotent-requests.ts';
import type { Principal } from '../permissions/principal.ts';
import type { Endpoint, ServicesFor } from './endpoint.ts';

/** A request that is performed once, even if it is retried. */
export interface OnceOnlyRequest {
  readonly requests: IdempotentRequests<ServicesFor>;
  readonly endpoint: Pick<Endpoint, 'withoutTransaction'>;
  readonly principal: Principal;
  /** The value of its `Idempotency-Key`. */
  readonly idempotencyKey: string;
  /**
   * Rejects with an error of the catalogue. `operationId` is the same for all retries of the request. `servicesFor` is that of the
   * transaction; undefined: there is none.
   */
  readonly perform: (operationId: string, servicesFor?: ServicesFor) => Promise<KeptResponse>;
}

/** Failures with these statuses are not kept: a retry may succeed later, or with other headers. */
const NOT_KEPT: ReadonlySet<number> = new Set([401, 403, 408, 412, 429]);

/** The value of `Idempotency-Key`; undefined if it is missing. Throws `bad_request` if it breaks the rule. */
export function readIdempotencyKey(req: Request): string | undefined {
  const idempotencyKey = req.get('Idempotency-Key');
  if (idempotencyKey === undefined || /^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) return idempotencyKey;
  throw new TollgateError(
    'bad_request',
    'The header Idempotency-Key must be 1 to 255 visible ASCII characters.',
  );
}

/** Performs the request and responds to it, or repeats the response to its first attempt. */
export async function respondOnce(
  req: Request,
  res: Response,
  { requests, endpoint, principal, idempotencyKey, perform }: OnceOnlyRequest,
): Promise<void> {
  const credential = principal.id ?? principal.type;
  const content = JSON.stringify([req.method, req.originalUrl, req.body ?? null]);
  // The root token permits all, of which versions that run side by side know different lists.
  const scopes = principal.type === 'root' ? [] : [...principal.scopes];
  const grant = { scopes, onlyTags: principal.onlyTags };
  const request = { credential, grant, idempotencyKey, content };
  const responseTo = principal.type === 'key' ? rethrow : keptFailure;
  const { response, isReplayed } = endpoint.withoutTransaction
    ? await requests.performWithoutTransaction(request, perform, responseTo)
    : await requests.perform(request, perform, responseTo);
  if (isReplayed) res.set('Idempotency-Replayed', 'true');
  // `keptFailure` has made the kept failures.
  if (response.status >= 400) throw new RepeatedFailure(response.body as FailedRequest['fields']);
  res.status(response.status).set(response.headers).json(response.body);
}

/** The response to a failure that every retry would get. Rethrows other failures. */
function keptFailure(error: unknown): KeptResponse {
  const { status, fields } = failureOf(error);
  if (status < 400 || status >= 500 || NOT_KEPT.has(status)) throw error;
  return { status, headers: {}, body: fields };
}

/** Consumers, who are many and not trusted, can't have the gateway store their failures. */
function rethrow(error: unknown): never {
  throw error;
}

/** The failure of the first attempt, in the format that this retry requests. */
class RepeatedFailure extends TollgateError {
  override readonly details: Readonly<Record<string, unknown>>;

  constructor({ error, code, ...details }: FailedRequest['fields']) {
    super(code, error);
    this.details = details;
  }
}
