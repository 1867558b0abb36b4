import { useEffect, useRef, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { BEARER_TOKEN } from '../../client/bearer-token.ts';
import { bodyOf } from '../../client/management-client.ts';
import { faultKind, faultSentence } from '../api/fault-kind.ts';
import { createGatewayClient } from '../api/gateway-client.ts';
import { acceptsRootToken, type FailedSignIn, signInHref } from '../api/provider-sign-in.ts';
import type { SessionStore, SignedOutReason } from '../api/session-store.ts';
import { Button, ButtonAnchor } from '../components/forms/button.tsx';
import { Checkbox, TextField } from '../components/forms/field.tsx';
import { Form } from '../components/forms/form.tsx';
import { Notice } from '../components/states/notice.tsx';
import iconUrl from '../icon.svg';
import styles from './sign-in-page.module.css';

interface SignInPageProps extends WhyProps {
  readonly session: SessionStore;
}

/** Offers the identity provider, if there is one, and asks for a token. The URL does not change, so that the requested page opens afterwards. */
export function SignInPage({ session, ...why }: SignInPageProps) {
  const { providerHost } = why;
  useEffect(() => {
    document.title = 'Sign in · Tollgate';
  }, []);
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <div className={styles.brand}>
          <img src={iconUrl} alt="" />
          <h1>Sign in to Tollgate</h1>
        </div>
        <Why {...why} />
        {providerHost !== undefined && <ProviderLink host={providerHost} />}
        <TokenForm session={session} isAlternative={providerHost !== undefined} />
        <p className={styles.help}>
          The token stays in this tab. It is sent to this gateway only, and never put into an address.
        </p>
      </div>
    </main>
  );
}

interface WhyProps {
  readonly reason: SignedOutReason;
  readonly failure: FailedSignIn | undefined;
  readonly providerHost: string | undefined;
}

/** Why the reader sees this page and not the one that was opened. */
function Why({ reason, failure, providerHost }: WhyProps) {
  if (failure !== undefined) {
    const { sentence, requestId } = failure;
    return (
      <Notice tone="failed">
        {sentence}
        {requestId !== undefined && (
          <div className={styles.requestId}>
            Request id: <code>{requestId}</code>
          </div>
        )}
      </Notice>
    );
  }
  if (reason === 'token-expired')
    return (
      <Notice tone="limited">The token is no longer valid. Sign in again to go on where you were.</Notice>
    );
  if (reason === 'session-ended')
    return <Notice tone="limited">Your session has ended. Sign in again to go on where you were.</Notice>;
  if (reason === 'signed-out' && providerHost !== undefined)
    return <Notice tone="neutral">You have signed out. You may still be signed in at {providerHost}.</Notice>;
  return null;
}

/** Leads to the identity provider, which sends the browser back to the page that is open now. */
function ProviderLink({ host }: { readonly host: string }) {
  // They make it render again when the page changes, as with the button "back".
  useLocation();
  useSearch();
  return (
    <>
      <ButtonAnchor look="primary" className={styles.submit} href={signInHref(window.location)}>
        <span className={styles.host}>Sign in with {host}</span>
      </ButtonAnchor>
      <p className={styles.or}>or with a token</p>
    </>
  );
}

interface TokenFormProps {
  readonly session: SessionStore;
  /** Whether there is another way to sign in, which comes first. */
  readonly isAlternative: boolean;
}

function TokenForm({ session, isAlternative }: TokenFormProps) {
  const [token, setToken] = useState('');
  const [remember, setRemember] = useState(true);
  const { signIn, error, isPending } = useSignIn(session);
  return (
    <Form onSubmit={() => signIn(token.trim(), remember)}>
      <TextField
        label="Token"
        error={error}
        hint={
          acceptsRootToken()
            ? 'An admin token (tga_…), or the root token.'
            : 'An admin token (tga_…). The root token is off in browsers.'
        }
        type="password"
        name="token"
        autoComplete="off"
        spellCheck={false}
        autoFocus={!isAlternative}
        value={token}
        onText={setToken}
      />
      <Checkbox
        label="Keep me signed in until this tab is closed"
        hint="Otherwise only until the page is reloaded."
        checked={remember}
        onChange={(event) => setRemember(event.target.checked)}
      />
      <Button
        look={isAlternative ? undefined : 'primary'}
        type="submit"
        className={styles.submit}
        aria-disabled={isPending}
      >
        {isPending ? 'Signing in…' : isAlternative ? 'Sign in with the token' : 'Sign in'}
      </Button>
    </Form>
  );
}

const UNKNOWN_TOKEN = 'The gateway does not know this token, or it has expired.';

/** Signs in if the gateway accepts the token. */
function useSignIn(session: SessionStore) {
  const [error, setError] = useState<string>();
  const [isPending, setPending] = useState(false);
  const isRunning = useRef(false);
  const signIn = async (token: string, remember: boolean) => {
    if (isRunning.current) return;
    if (token === '') return setError('Enter a token.');
    if (!BEARER_TOKEN.test(token)) return setError(UNKNOWN_TOKEN);
    isRunning.current = true;
    setPending(true);
    setError(undefined);
    try {
      await bodyOf(createGatewayClient(token, () => undefined).GET('/tollgate/whoami'));
      session.signIn(token, remember);
    } catch (fault) {
      setError(faultKind(fault) === 'unauthorized' ? UNKNOWN_TOKEN : faultSentence(fault));
      isRunning.current = false;
      setPending(false);
    }
  };
  return { signIn, error, isPending };
}
