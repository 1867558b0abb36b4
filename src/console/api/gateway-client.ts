import { createManagementClient, type ManagementClient } from '../../client/management-client.ts';
import { timedFetch } from '../../client/timed-fetch.ts';
import { BATCHED_TYPE, EVENT_TYPES, TEST_TYPE } from '../../events/event-types.ts';
import { EventFeed, streamOf } from './event-feed.ts';

/** What the pages reach the gateway by. */
export interface Gateway {
  readonly client: ManagementClient;
  readonly feed: EventFeed;
  /** Says which scopes the token has: the feed asks for the events that they let it hear. */
  readonly setScopes: (scopes: readonly string[]) => void;
  /** Sends all requests after a rotation of the signed-in token with its new secret. Resolves, or rejects, as the rotation does. */
  readonly adoptSecret: <Rotated extends RotatedToken>(rotation: Promise<Rotated>) => Promise<Rotated>;
}

interface RotatedToken {
  readonly data?: { readonly secret: string };
}

interface SignInEvents {
  /** The token or the session is no longer valid. */
  readonly onUnauthorized: () => void;
  readonly onNewSecret: (secret: string) => void;
}

/** The client of a token or, without one, of the browser's session, and its stream of events. */
export function connectGateway(token: string | null, { onUnauthorized, onNewSecret }: SignInEvents): Gateway {
  const credential: Credential = { token, rotation: Promise.resolve() };
  const send = senderFor(credential, onUnauthorized);
  const client = clientWith(send);
  let types = '';
  return {
    client,
    feed: new EventFeed(streamOf(client, () => types)),
    setScopes: (scopes) => {
      types = followedTypes(scopes).join(',');
    },
    adoptSecret: async (rotation) => {
      const adopted = rotation.then(({ data }) => {
        if (data === undefined) return;
        credential.token = data.secret;
        onNewSecret(data.secret);
      });
      credential.rotation = adopted.catch(() => undefined);
      await adopted;
      return rotation;
    },
  };
}

/** No usage: while it is heard, the gateway makes an event for each key and hour, and no page needs these. */
function followedTypes(scopes: readonly string[]): readonly string[] {
  return Object.entries(EVENT_TYPES)
    .filter(([type, { scope }]) => type !== BATCHED_TYPE && type !== TEST_TYPE && scopes.includes(scope))
    .map(([type]) => type);
}

/** The generated client for the gateway that served this page, with a token or the browser's session. */
export function createGatewayClient(token: string | null, onUnauthorized: () => void): ManagementClient {
  return clientWith(senderFor({ token, rotation: Promise.resolve() }, onUnauthorized));
}

type Send = (request: Request) => Promise<Response>;

function clientWith(send: Send): ManagementClient {
  return createManagementClient({
    url: window.location.origin,
    // `send` adds it.
    token: null,
    // The gateway accepts the cookie of a session only together with it: no form can send it.
    headers: { 'Tollgate-Console': '1' },
    fetch: send,
  });
}

/** What requests authenticate with. */
interface Credential {
  /** Null: the cookie of the browser's session. */
  token: string | null;
  /** Resolves when no rotation of the token is under way. */
  rotation: Promise<unknown>;
}

/** How long the head of a response, or a further part of its body, may take. */
const TIMEOUT_MS = 30_000;
/** The same for what may take longer the more there is: to verify the audit log, and to delete a plan with its keys. */
const LONG_TIMEOUT_MS = 300_000;

/** Sends either the token or the cookie, never both. A response that does not come in time rejects with a `TimeoutError`. */
function senderFor(credential: Credential, onUnauthorized: () => void): Send {
  return async (request) => {
    const { token } = credential;
    if (token !== null) request.headers.set('Authorization', `Bearer ${token}`);
    const credentials = token === null ? 'same-origin' : 'omit';
    const sent = new Request(request, { cache: 'no-store', credentials });
    const response = await timedFetch(sent, timeoutOf(sent));
    // A rotation ends the previous secret before its response arrives: that is no reason to sign out.
    if (response.status === 401)
      void credential.rotation.then(() => token === credential.token && onUnauthorized());
    return response;
  };
}

function timeoutOf({ method, url }: Request): number {
  const { pathname } = new URL(url);
  const deletesPlan = method === 'DELETE' && pathname.startsWith('/rate-limit/');
  return deletesPlan || pathname === '/tollgate/audit-log/verify' ? LONG_TIMEOUT_MS : TIMEOUT_MS;
}
