import { type FormEvent, useState } from 'react';
import { bodyOf } from '../../client/management-client.ts';
import { faultKind, faultSentence } from '../api/fault-kind.ts';
import { createGatewayClient } from '../api/gateway-client.ts';
import type { SessionStore, SignedOutReason } from '../api/session-store.ts';
import { Button } from '../components/forms/button.tsx';
import { Checkbox, TextField } from '../components/forms/field.tsx';
import { Notice } from '../components/states/notice.tsx';
import iconUrl from '../icon.svg';
import styles from './sign-in-page.module.css';

interface SignInPageProps {
  readonly session: SessionStore;
  readonly reason: SignedOutReason;
}

/** Asks for a token. The URL does not change, so that the requested page opens afterwards. */
export function SignInPage({ session, reason }: SignInPageProps) {
  const [token, setToken] = useState('');
  const [remember, setRemember] = useState(true);
  const { signIn, error, isPending } = useSignIn(session);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    return signIn(token.trim(), remember);
  };
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <div className={styles.brand}>
          <img src={iconUrl} alt="" />
          <h1>Sign in to Tollgate</h1>
        </div>
        {reason === 'expired' && (
          <Notice tone="limited">The token is no longer valid. Sign in again to go on where you were.</Notice>
        )}
        <form onSubmit={submit} noValidate>
          <TextField
            label="Token"
            error={error}
            hint="An admin token (tga_…), or the root token."
            type="password"
            name="token"
            autoComplete="off"
            spellCheck={false}
            autoFocus
            value={token}
            onText={setToken}
          />
          <Checkbox
            label="Keep me signed in until this tab is closed"
            hint="Otherwise only until the page is reloaded."
            checked={remember}
            onChange={(event) => setRemember(event.target.checked)}
          />
          <Button look="primary" type="submit" className={styles.submit} disabled={isPending}>
            {isPending ? 'Signing in…' : 'Sign in'}
          </Button>
        </form>
        <p className={styles.help}>
          The token stays in this tab. It is sent to this gateway only, and never put into an address.
        </p>
      </div>
    </main>
  );
}

/** Signs in if the gateway accepts the token. */
function useSignIn(session: SessionStore) {
  const [error, setError] = useState<string>();
  const [isPending, setPending] = useState(false);
  const signIn = async (token: string, remember: boolean) => {
    if (token === '') return setError('Enter a token.');
    setPending(true);
    setError(undefined);
    try {
      await bodyOf(createGatewayClient(token, () => undefined).GET('/tollgate/whoami'));
      session.signIn(token, remember);
    } catch (fault) {
      setError(
        faultKind(fault) === 'unauthorized'
          ? 'The gateway does not know this token, or it has expired.'
          : faultSentence(fault),
      );
      setPending(false);
    }
  };
  return { signIn, error, isPending };
}
