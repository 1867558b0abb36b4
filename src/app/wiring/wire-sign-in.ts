import type { SecretVault } from '../../secrets/secret-vault.ts';
import { AccessTokens } from '../../sign-in/access-tokens.ts';
import { IdentityProvider } from '../../sign-in/identity-provider.ts';
import type { People } from '../../sign-in/people.ts';
import { Sessions } from '../../sign-in/sessions.ts';
import { SignIn } from '../../sign-in/sign-in.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import type { ReplicaContext } from '../replica-context.ts';

interface SignInParts {
  readonly records: Pick<Records, 'sessions'>;
  readonly vault: SecretVault;
  /** The timeout of a request to the provider. Milliseconds. */
  readonly timeoutMs?: number | undefined;
}

const HOUR_MS = 3_600_000;

/** Builds sign-in. Undefined if the settings that it needs are not set. */
export function wireSignIn(
  { settings, platform }: Pick<ReplicaContext, 'settings' | 'platform'>,
  { records, vault, timeoutMs }: SignInParts,
): People | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcScopesMap: map, publicAdminUrl } = settings;
  if (issuer === null || clientId === null || map === null || publicAdminUrl === null) return undefined;
  const { clock, random, log } = platform;
  const { oidcClientSecret: clientSecret, oidcScopes: scopes, oidcScopesClaim: claim } = settings;
  const { oidcSessionHours, oidcAudience: audience } = settings;
  const provider = new IdentityProvider({
    ...{ issuer, clientId, clientSecret, scopes, claim, clock, log, timeoutMs },
  });
  const sessions = new Sessions({
    ...{ store: records.sessions, provider, vault, claim, map, clock, random, log },
    sessionMs: oidcSessionHours * HOUR_MS,
  });
  return {
    sessions,
    signIn: new SignIn({ provider, sessions, vault, clock, log }),
    accessTokens:
      audience === null ? undefined : new AccessTokens({ provider, audience, claim, map, clock, log }),
    publicOrigin: publicAdminUrl,
    providerHost: issuer.host,
  };
}
