import type { Request, Response } from 'express';
import type { Principal } from '../admins/principal.ts';
import { TollgateError } from '../errors.ts';
import { type FailedRequest, failureOf } from '../http/errors/error-responses.ts';
import type { IdempotentRequests, KeptResponse } from '../idempotency/idempotent-requests.ts';

/** A request that is performed once, however often it is sent. */
export interface OnceOnlyRequest {
  readonly requests: IdempotentRequests;
  readonly principal: Principal;
  /** Of its `Idempotency-Key`. */
  readonly key: string;
  /** Rejects with an error of the catalogue. `operationId` is the same for all sendings of the request. */
  readonly perform: (operationId: string) => Promise<KeptResponse>;
}

/** Rejections that say nothing of the request itself, or that end with other headers or when it is sent later. */
const NOT_KEPT: ReadonlySet<number> = new Set([401, 403, 408, 412, 429]);

/** The value of `Idempotency-Key`; undefined for a request without. Throws `bad_request` for one that breaks the rule. */
export function readIdempotencyKey(req: Request): string | undefined {
  const key = req.get('Idempotency-Key');
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new TollgateError(
    'bad_request',
    'The header Idempotency-Key must be 1 to 255 visible ASCII characters.',
  );
}

/** Performs the request and responds to it, or repeats the response of the first time. */
export async function respondOnce(
  req: Request,
  res: Response,
  { requests, principal, key, perform }: OnceOnlyRequest,
): Promise<void> {
  const credential = principal.id ?? principal.type;
  const content = JSON.stringify([req.method, req.originalUrl, req.body ?? null]);
  const { response, isReplayed } = await requests.perform({ credential, key, content }, perform, keptFailure);
  if (isReplayed) res.set('Idempotency-Replayed', 'true');
  // Kept failures are what `keptFailure` has made.
  if (response.status >= 400) throw new RepeatedFailure(response.body as FailedRequest['fields']);
  res.status(response.status).set(response.headers).json(response.body);
}

/** The response to a failure that is the same whenever the request is sent. Throws the failure otherwise. */
function keptFailure(error: unknown): KeptResponse {
  const { status, fields } = failureOf(error);
  if (status < 400 || status >= 500 || NOT_KEPT.has(status)) throw error;
  return { status, headers: {}, body: fields };
}

/** A failure of the first time, in the format that this sending of the request asks for. */
class RepeatedFailure extends TollgateError {
  override readonly details: Readonly<Record<string, unknown>>;

  constructor({ error, code, ...details }: FailedRequest['fields']) {
    super(code, error);
    this.details = details;
  }
}
