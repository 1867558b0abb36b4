import { UserRound } from 'lucide-react';
import { useState } from 'react';
import type { components } from '../../../client/management-api.ts';
import { useChange } from '../../api/change.ts';
import { useLivePages } from '../../api/live-pages.ts';
import { readProviderSignIn } from '../../api/provider-sign-in.ts';
import { Button } from '../../components/forms/button.tsx';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { type Column, DataTable } from '../../components/layout/data-table.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { SecondLine } from '../../components/layout/second-line.tsx';
import { EmptyState } from '../../components/states/empty-state.tsx';
import { toast } from '../../components/states/toast.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { StatusBadge } from '../../components/text/status-badge.tsx';
import { GRANT_COLUMNS, grantWords } from './grant-columns.tsx';
import styles from './tokens.module.css';

type Session = components['schemas']['Session'];

/** Who has signed in with the identity provider, and a way to end each session. Nothing without a provider. */
export function SignedInPeople() {
  return readProviderSignIn() === undefined ? null : <Sessions />;
}

function Sessions() {
  const [ending, setEnding] = useState<Session>();
  const sessions = useSessions();
  return (
    <section aria-labelledby="people">
      <h2 id="people" className={styles.section}>
        Signed-in people
      </h2>
      <DataTable
        label="signed-in people"
        live={sessions}
        columns={columnsOf(setEnding)}
        rowId={({ sessionId }) => sessionId}
        pages={sessions}
        empty={
          <EmptyState icon={UserRound} title="No one is signed in">
            People who sign in with the identity provider are listed here.
          </EmptyState>
        }
      />
      {ending !== undefined && <EndSession session={ending} onClose={() => setEnding(undefined)} />}
    </section>
  );
}

function useSessions() {
  return useLivePages(
    ['sessions'],
    (client, query, signal) => client.GET('/tollgate/session', { params: { query }, signal }),
    { page: ({ sessions, nextCursor }) => ({ rows: sessions, nextCursor }), scope: 'tokens:write' },
  );
}

function columnsOf(onEnd: (session: Session) => void): readonly Column<Session>[] {
  return [
    { id: 'name', header: 'Person', sortBy: ({ name }) => name, cell: (session) => <Person {...session} /> },
    {
      id: 'kind',
      header: 'With',
      cell: ({ kind }) => (kind === 'browser' ? 'the console' : 'the command'),
      wideOnly: true,
    },
    { id: 'address', header: 'From', cell: ({ address }) => <code>{address}</code>, wideOnly: true },
    ...GRANT_COLUMNS,
    {
      id: 'used',
      header: 'Last used',
      wideOnly: true,
      sortBy: ({ lastUsedAt }) => Date.parse(lastUsedAt),
      cell: ({ lastUsedAt }) => <RelativeTime at={lastUsedAt} />,
    },
    {
      id: 'ends',
      header: 'Ends',
      cell: ({ expiresAt }) => <RelativeTime at={expiresAt} />,
      wideOnly: true,
    },
    {
      id: 'actions',
      header: 'Actions',
      hiddenHeader: true,
      align: 'end',
      cell: (session) =>
        session.current ? null : (
          <Button small onClick={() => onEnd(session)} aria-label={`Sign out… ${session.name}`}>
            Sign out…
          </Button>
        ),
    },
  ];
}

function Person(session: Session) {
  const { name, email, current, lastUsedAt, expiresAt } = session;
  return (
    <>
      <bdi>{name}</bdi> {current && <StatusBadge tone="accent">You</StatusBadge>}
      {email !== null && email !== name && <bdi className={styles.email}>{email}</bdi>}
      <SecondLine>
        {grantWords(session)} · <RelativeTime at={lastUsedAt} />, ends <RelativeTime at={expiresAt} />
      </SecondLine>
    </>
  );
}

interface EndSessionProps {
  readonly session: Session;
  readonly onClose: () => void;
}

/** Explains what ending a session does, and what it does not. */
function EndSession({ session: { sessionId, name }, onClose }: EndSessionProps) {
  const end = useChange((client, _: undefined) =>
    client.DELETE('/tollgate/session/{sessionId}', { params: { path: { sessionId } } }),
  );
  const submit = async () => {
    if ((await end.submit(undefined)) === undefined) return;
    toast.done(`${name} is signed out`);
    onClose();
  };
  return (
    <Dialog title={`Sign ${name} out?`} onClose={onClose}>
      <ChangeForm
        change={end}
        submit="Sign out"
        pending="Signing out…"
        isDanger
        onSubmit={submit}
        onCancel={onClose}
      >
        <p className={styles.lead}>
          The next request of this session is rejected, on every replica. Other sessions of the person go on.
        </p>
        <p>
          To keep the person out, remove them from the group at the identity provider first: they can sign in
          again.
        </p>
      </ChangeForm>
    </Dialog>
  );
}
