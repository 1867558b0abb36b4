import {
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  None,
  ResponseBodyError,
  type ServerMetadata,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import { SignInFailure } from './sign-in-failure.ts';

/** Where a client sends its secret: in the header or in the body (OpenID Connect Core 9). */
type Way = 'client_secret_basic' | 'client_secret_post';

/**
 * How the gateway authenticates at the provider as its client. A provider may offer both ways for the secret and still take only the one that the
 * client is registered for, which its metadata does not say: where it does not know the client, the other way is tried, and kept if it is right.
 */
export class ClientAuthentication {
  readonly #ways: Readonly<Record<Way, ClientAuth>> | undefined;
  /** The one that was right at last. */
  #learned: Way | undefined;

  /** Without a secret the client is a public one. */
  constructor(secret: string | null) {
    if (secret !== null)
      this.#ways = {
        client_secret_basic: ClientSecretBasic(secret),
        client_secret_post: ClientSecretPost(secret),
      };
  }

  /** What `openid-client` calls for each request. */
  readonly authenticate: ClientAuth = (server, ...request) =>
    (this.#ways?.[this.#wayAt(server)] ?? None())(server, ...request);

  /** Sends a request to the provider, and once more in the other way if the provider does not know the client. */
  async attempt<Result>(server: ServerMetadata, send: () => Promise<Result>): Promise<Result> {
    const way = this.#wayAt(server);
    try {
      return await send();
    } catch (error) {
      if (this.#ways === undefined || !isUnknownClient(error)) throw error;
    }
    this.#learned = way === 'client_secret_basic' ? 'client_secret_post' : 'client_secret_basic';
    try {
      return await send();
    } catch (error) {
      if (!isUnknownClient(error)) throw error;
      this.#learned = way;
      throw new SignInFailure('provider_unavailable', 'invalid_client');
    }
  }

  /** Without a list, the header is the only way that is sure to be there (OpenID Connect Discovery 3). */
  #wayAt({ token_endpoint_auth_methods_supported: offered }: ServerMetadata): Way {
    const hasPost = Array.isArray(offered) && offered.includes('client_secret_post');
    return this.#learned ?? (hasPost ? 'client_secret_post' : 'client_secret_basic');
  }
}

/** A response of the token endpoint (RFC 6749, section 5.2): with 401 it may have a challenge, after which its body is not read. */
function isUnknownClient(error: unknown): boolean {
  if (error instanceof WWWAuthenticateChallengeError) return error.status === 401;
  return error instanceof ResponseBodyError && error.error === 'invalid_client';
}
