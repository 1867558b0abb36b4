/**
 * How an attempt to sign in ended: the closed set of the log and of the metric.
 *
 * - `provider_unavailable`: the identity provider could not be reached, failed, or rejected the gateway's client.
 * - `provider_rejected`: it rejected the person, or the code.
 * - `response_invalid`: its response is not one to this attempt: state, nonce, issuer, signature or times are wrong.
 * - `not_started`: the browser or the command did not begin this attempt, or too long ago.
 * - `no_scopes`: the map grants the person nothing.
 */
export const SIGN_IN_OUTCOMES = [
  'signed_in',
  'provider_unavailable',
  'provider_rejected',
  'response_invalid',
  'not_started',
  'no_scopes',
] as const;

export type SignInOutcome = (typeof SIGN_IN_OUTCOMES)[number];

export type SignInReason = Exclude<SignInOutcome, 'signed_in'>;

const MESSAGES: Readonly<Record<SignInReason, string>> = {
  provider_unavailable: 'The identity provider could not be reached. Try again shortly.',
  provider_rejected: 'The identity provider rejected the sign-in.',
  response_invalid: 'The response of the identity provider is not valid for this sign-in. Begin again.',
  not_started: 'This sign-in was not begun here, or too long ago. Begin again.',
  no_scopes: 'You have signed in, but OIDC_SCOPES_MAP grants you nothing here.',
};

/** An attempt to sign in, or to renew a session, that failed. `detail` is for the log and holds no secret. */
export class SignInFailure extends Error {
  readonly reason: SignInReason;
  readonly detail: string | undefined;

  constructor(reason: SignInReason, detail?: string) {
    super(MESSAGES[reason]);
    this.name = 'SignInFailure';
    this.reason = reason;
    this.detail = detail;
  }
}
