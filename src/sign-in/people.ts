import type { Principal } from '../permissions/principal.ts';
import type { AccessTokens } from './access-tokens.ts';
import type { Sessions } from './sessions.ts';
import type { SignIn } from './sign-in.ts';
import { SESSION_PREFIX } from './signed-in-session.ts';

/** Sign-in as the management interface uses it. */
export interface People {
  readonly signIn: SignIn;
  readonly sessions: Sessions;
  /** Undefined: access tokens of programs are not accepted. */
  readonly accessTokens: Pick<AccessTokens, 'authenticate'> | undefined;
  /** The origin at which browsers reach the console. */
  readonly publicOrigin: string;
  /** The host of the identity provider. */
  readonly providerHost: string;
}

/** The longest access token that is looked at, in characters. */
const LONGEST_TOKEN = 8192;
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * Who presents a bearer token, if it is that of a command's session, or an access token. Null: it has the form of neither. `client` names
 * the client that presents it.
 */
export function authenticateBearer(
  { sessions, accessTokens }: Pick<People, 'sessions' | 'accessTokens'>,
  token: string,
  client: string,
): Promise<Principal | undefined> | null {
  if (token.startsWith(`${SESSION_PREFIX}_`)) return sessions.authenticate(token, 'command', client);
  if (accessTokens === undefined || token.length > LONGEST_TOKEN || !JWT.test(token)) return null;
  return accessTokens.authenticate(token);
}
