import { timedFetch } from '../../client/timed-fetch.ts';

/** How long the head of a response, or its body, may take. */
const TIMEOUT_MS = 30_000;

/** What a link is, as the gateway says. */
export type OpenedLink =
  | {
      readonly kind: 'opened';
      readonly state: string;
      readonly name: string | null;
      readonly note: string | null;
      readonly expiresAt: string;
      readonly usedAt: string | null;
    }
  | LinkFault;

/** The secret, or why there is none. */
export type RevealedLink =
  | { readonly kind: 'revealed'; readonly name: string; readonly secret: string }
  | { readonly kind: 'gone' }
  | LinkFault;

/** A failure. `broken`: the response of the gateway did not arrive, so that it is unknown what it has done. */
interface LinkFault {
  readonly kind: 'unknown' | 'too_many' | 'away' | 'broken';
  readonly requestId: string | null;
}

/** Asks what a link is, which uses nothing up. */
export async function openLink(token: string): Promise<OpenedLink> {
  const response = await post('open', token);
  if (response.kind === 'done') return { kind: 'opened', ...(response.body as object) } as OpenedLink;
  return response.kind === 'broken' ? { kind: 'away', requestId: null } : faultOf(response);
}

/** Asks for the secret, which uses the link up. */
export async function revealLink(token: string): Promise<RevealedLink> {
  const response = await post('reveal', token);
  if (response.kind === 'done') return { kind: 'revealed', ...(response.body as object) } as RevealedLink;
  if (response.kind === 'failed') {
    const { status, requestId } = response;
    if (status === 410) return { kind: 'gone' };
    // A proxy on the way may have given up a request that the gateway has performed.
    if (status >= 500) return { kind: 'broken', requestId };
  }
  return faultOf(response);
}

type Posted =
  | { readonly kind: 'done'; readonly body: unknown }
  | { readonly kind: 'failed'; readonly status: number; readonly requestId: string | null }
  | { readonly kind: 'broken' };

async function post(action: 'open' | 'reveal', token: string): Promise<Posted> {
  try {
    const request = new Request(`${location.pathname}/${action}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token }),
      credentials: 'omit',
      cache: 'no-store',
    });
    const response = await timedFetch(request, TIMEOUT_MS);
    if (response.ok) return { kind: 'done', body: await response.json() };
    return { kind: 'failed', status: response.status, requestId: response.headers.get('X-Request-Id') };
  } catch {
    return { kind: 'broken' };
  }
}

function faultOf(response: Posted): LinkFault {
  if (response.kind !== 'failed') return { kind: 'broken', requestId: null };
  const { status, requestId } = response;
  if (status === 404 || status === 400) return { kind: 'unknown', requestId };
  return { kind: status === 429 ? 'too_many' : 'away', requestId };
}
