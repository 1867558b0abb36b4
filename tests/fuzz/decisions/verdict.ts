import type { ReadResponse } from '../response-reader.ts';
import type { Dialect } from './call-head.ts';
import type { Original } from './original.ts';

/** What was decided, whatever way it was asked for. */
export interface Verdict {
  readonly status: number;
  /** Of an error; undefined where there is none, or no body that could say it. */
  readonly code: string | undefined;
  /** In the window that the response names; undefined where it names none. */
  readonly remaining: number | undefined;
}

/** The verdict in a response of the proxy, or of `/authorize`. */
export function verdictIn({ status, headers, body }: ReadResponse): Verdict {
  const text = headers.get('tollgate-body') ?? body.toString('latin1');
  const remaining = headers.get('x-ratelimit-remaining');
  return {
    status: Number(headers.get('tollgate-status') ?? status),
    code: /"code":"(\w+)"/.exec(text)?.[1],
    remaining: remaining === undefined ? undefined : Number(remaining),
  };
}

/** The verdict in a response of `/verify`. */
export function verdictInBody({ status, body }: ReadResponse): Verdict {
  if (status !== 200) return { status, code: undefined, remaining: undefined };
  const { code, limits, ...verdict } = JSON.parse(body.toString('utf8')) as VerifyBody;
  return {
    status: verdict.status,
    code: code === null || code === 'limited' ? undefined : code,
    remaining: limits?.[0]?.remaining,
  };
}

interface VerifyBody {
  readonly status: number;
  readonly code: string | null;
  readonly limits?: readonly { readonly remaining: number }[];
}

/** What `/authorize` must decide, given the verdict of the proxy on the same request with a key that was used in the same way. */
export function askedVerdict({ isPreflight }: Original, dialect: Dialect, proxied: Verdict): Verdict {
  const { status } = proxied;
  // The proxy itself responds to it.
  if (isPreflight && status === 204) return { ...proxied, status: 200 };
  if (isPreflight && status === 401) return { ...proxied, status: 403, code: 'origin_not_allowed' };
  // There an invalid path may make the call itself invalid.
  if (status === 400)
    return { ...proxied, code: dialect === 'envoy' ? undefined : 'original_request_invalid' };
  return proxied;
}

/** What `/verify` must decide: what the proxy does not forward has no valid description. */
export function verifiedVerdict(proxied: Verdict): Verdict {
  return proxied.status === 400 || proxied.status === 405
    ? { status: 400, code: undefined, remaining: undefined }
    : proxied;
}

/** Whether two verdicts differ. A code that only one of them can say is no difference. */
export function differ(one: Verdict, other: Verdict): boolean {
  const codes = one.code !== undefined && other.code !== undefined && one.code !== other.code;
  return codes || one.status !== other.status || one.remaining !== other.remaining;
}
