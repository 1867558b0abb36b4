/** Sign-in with an identity provider, as the gateway offers it in the page that it serves. */
export interface ProviderSignIn {
  /** The host of the identity provider. */
  readonly host: string;
  /** Whether the browser had the cookie of a session when it loaded the page. The session may have ended. */
  readonly hasSession: boolean;
}

/** A sign-in from which the gateway has sent the browser back without a session. */
export interface FailedSignIn {
  /** For the person at the console. */
  readonly sentence: string;
  /** By which the gateway's log knows the attempt; undefined if it has not the form of an id. */
  readonly requestId: string | undefined;
}

const SIGN_IN_PATH = '/tollgate/sign-in';

/** By the outcome of the attempt, as in the gateway's log. */
const SENTENCES: Readonly<Record<string, string>> = {
  provider_unavailable: 'The identity provider could not be reached. Try again shortly, or use a token.',
  provider_rejected: 'The identity provider rejected the sign-in.',
  response_invalid: 'The response of the identity provider is not valid for this sign-in. Begin again.',
  not_started: 'This sign-in was not begun in this browser, or too long ago. Begin again.',
  no_scopes:
    'The identity provider has confirmed who you are, but you have no access here. An administrator of the gateway can give it to you.',
};
/** The ids that the gateway uses: the address may have been written by anyone. */
const REQUEST_ID = /^[A-Za-z0-9._~+/=-]{1,128}$/;

/** Undefined if the gateway does not offer it. */
export function readProviderSignIn(): ProviderSignIn | undefined {
  const tag = signInTag();
  if (tag === null || tag.content === '') return undefined;
  return { host: tag.content, hasSession: tag.dataset.session === 'true' };
}

/** Whether the gateway accepts the root token from browsers. */
export function acceptsRootToken(): boolean {
  return signInTag()?.dataset.rootToken !== 'off';
}

function signInTag(): HTMLMetaElement | null {
  return document.querySelector<HTMLMetaElement>('meta[name="tollgate-sign-in"]');
}

/** The address at which a sign-in begins that ends on the page that is shown now. */
export function signInHref({ pathname, search }: Pick<Location, 'pathname' | 'search'>): string {
  return `${SIGN_IN_PATH}?${new URLSearchParams({ return: pathname + search })}`;
}

/** Reads a failed sign-in from the address, and removes it there: a reload or a bookmark must not show it again. */
export function takeFailedSignIn(): FailedSignIn | undefined {
  const url = new URL(window.location.href);
  const outcome = url.searchParams.get('signIn');
  if (outcome === null) return undefined;
  const requestId = url.searchParams.get('requestId') ?? '';
  url.searchParams.delete('signIn');
  url.searchParams.delete('requestId');
  window.history.replaceState(window.history.state, '', url);
  return {
    // Another replica may be newer, and know more outcomes.
    sentence: (Object.hasOwn(SENTENCES, outcome) && SENTENCES[outcome]) || 'The sign-in failed. Begin again.',
    requestId: REQUEST_ID.test(requestId) ? requestId : undefined,
  };
}
