import { useLocation } from 'wouter';
import { useApi } from '../api/api-context.tsx';
import { signInHref } from '../api/provider-sign-in.ts';
import type { SessionStore } from '../api/session-store.ts';
import { ButtonAnchor } from '../components/forms/button.tsx';
import { Notice } from '../components/states/notice.tsx';
import { useNow } from '../components/text/use-now.ts';
import { timeText } from '../format/exact-time.ts';

const WARNING_MS = 10 * 60_000;

/** From ten minutes before the sign-in ends: when that is, and how what is typed is kept (WCAG 2.2.1). */
export function SessionEnd() {
  const { whoami, session } = useApi();
  const { expiresAt } = whoami;
  // The link leads to the page that is shown.
  useLocation();
  const now = useNow();
  if (expiresAt === null || Date.parse(expiresAt) - now > WARNING_MS) return null;
  const at = timeText(Date.parse(expiresAt));
  // A tab with a token keeps it, also that of a person: it does not see a sign-in in another tab.
  if (!hasCookie(session))
    return <Notice tone="limited">Your token expires at {at}: save before then what you have typed.</Notice>;
  return (
    <Notice
      tone="limited"
      action={
        <ButtonAnchor target="_blank" href={signInHref(window.location)}>
          Sign in again
        </ButtonAnchor>
      }
    >
      Your session ends at {at}. Sign in again in another tab before then: what you have typed here stays.
    </Notice>
  );
}

function hasCookie({ current }: SessionStore): boolean {
  const signIn = current();
  return signIn.status === 'signed-in' && signIn.token === null;
}
