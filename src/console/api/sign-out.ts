import { bodyOf } from '../../client/management-client.ts';
import { toast } from '../components/states/toast.tsx';
import type { Api } from './api-context.tsx';
import { faultKind, faultSentence } from './fault-kind.ts';

/** Signs out of this tab, and ends the session of a person at the gateway. The person stays signed in if that fails, and sees why. */
export async function signOut({ client, session }: Pick<Api, 'client' | 'session'>): Promise<void> {
  const current = session.current();
  if (current.status === 'signed-in' && current.token === null) {
    try {
      const path = { sessionId: 'current' };
      await bodyOf(client.DELETE('/tollgate/session/{sessionId}', { params: { path } }));
    } catch (error) {
      if (!isOver(error)) {
        toast.failed('You are still signed in', faultSentence(error));
        return;
      }
    }
  }
  session.signOut();
}

/** The session had ended before. */
function isOver(error: unknown): boolean {
  const kind = faultKind(error);
  return kind === 'unauthorized' || kind === 'not-found';
}
