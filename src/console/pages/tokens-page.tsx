import { EllipsisVertical, Plus, ShieldCheck } from 'lucide-react';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { useApi, useScopes } from '../api/api-context.tsx';
import { useLivePages } from '../api/live-pages.ts';
import { Button, TextButton } from '../components/forms/button.tsx';
import { Menu } from '../components/forms/menu.tsx';
import { type Column, DataTable } from '../components/layout/data-table.tsx';
import { PageHeader } from '../components/layout/page-header.tsx';
import { SecondLine } from '../components/layout/second-line.tsx';
import { EmptyState } from '../components/states/empty-state.tsx';
import { NoScope } from '../components/states/live-state.tsx';
import { RelativeTime } from '../components/text/relative-time.tsx';
import { StatusBadge } from '../components/text/status-badge.tsx';
import { shortTime } from '../format/exact-time.ts';
import { now } from '../format/now.ts';
import { CreateToken } from './tokens/create-token.tsx';
import { EditToken } from './tokens/edit-token.tsx';
import { GRANT_COLUMNS, grantWords } from './tokens/grant-columns.tsx';
import { RevokeToken } from './tokens/revoke-token.tsx';
import { RotateToken } from './tokens/rotate-token.tsx';
import type { AdminToken } from './tokens/shown-token.ts';
import { SignedInPeople } from './tokens/signed-in-people.tsx';
import styles from './tokens/tokens.module.css';

/** The admin tokens of this gateway. */
export function TokensPage() {
  const { can } = useScopes();
  if (!can('tokens:write')) return <NoScope what="admin tokens" scope="tokens:write" />;
  return <Tokens />;
}

/** The open dialog for a token. */
interface Action {
  readonly kind: 'edit' | 'rotate' | 'revoke';
  readonly token: AdminToken;
}

function Tokens() {
  const { whoami } = useApi();
  const { can } = useScopes();
  const [params, setParams] = useSearchParams();
  const [action, setAction] = useState<Action>();
  const tokens = useTokens();
  const create = () => setParams({ create: '' }, { replace: true });
  const close = () => setAction(undefined);
  return (
    <>
      <PageHeader
        title="Admin tokens"
        about="One for each person and each program, with no more scopes than they need."
        actions={
          <Button look="primary" onClick={create}>
            <Plus aria-hidden="true" />
            Create token
          </Button>
        }
      />
      <DataTable
        label="admin tokens"
        live={tokens}
        columns={columnsOf({
          ownId: whoami.adminTokenId,
          // A token can only change tokens whose scopes it has.
          mayChange: ({ scopes }) => scopes.every(can),
          onAction: (kind, token) => setAction({ kind, token }),
        })}
        rowId={({ adminTokenId }) => adminTokenId}
        pages={tokens}
        empty={
          <EmptyState
            icon={ShieldCheck}
            title="No admin tokens yet"
            action={<Button onClick={create}>Create the first</Button>}
          >
            Until then there is only the root token, which may do everything.
          </EmptyState>
        }
      />
      <SignedInPeople />
      {params.has('create') && <CreateToken onClose={() => setParams({}, { replace: true })} />}
      {action?.kind === 'edit' && <EditToken token={action.token} onClose={close} />}
      {action?.kind === 'rotate' && <RotateToken token={action.token} onClose={close} />}
      {action?.kind === 'revoke' && <RevokeToken token={action.token} onClose={close} />}
    </>
  );
}

function useTokens() {
  return useLivePages(
    ['tokens'],
    (client, query, signal) => client.GET('/tollgate/admin-token', { params: { query }, signal }),
    { page: ({ adminTokens, nextCursor }) => ({ rows: adminTokens, nextCursor }), scope: 'tokens:write' },
  );
}

interface ColumnOptions {
  /** The id of the token that is signed in; null for the root token. */
  readonly ownId: string | null;
  readonly mayChange: (token: AdminToken) => boolean;
  readonly onAction: (kind: Action['kind'], token: AdminToken) => void;
}

function columnsOf(options: ColumnOptions): readonly Column<AdminToken>[] {
  return [
    {
      id: 'name',
      header: 'Token',
      sortBy: ({ name }) => name,
      cell: (token) => <TokenName token={token} {...options} />,
    },
    { id: 'hint', header: 'Secret', wideOnly: true, cell: ({ secretHint }) => <code>{secretHint}</code> },
    ...GRANT_COLUMNS,
    {
      id: 'used',
      header: 'Last used',
      wideOnly: true,
      sortBy: ({ lastUsedAt }) => (lastUsedAt === null ? undefined : Date.parse(lastUsedAt)),
      cell: ({ lastUsedAt }) => <RelativeTime at={lastUsedAt} missing="Never used" />,
    },
    {
      id: 'state',
      header: 'State',
      wideOnly: true,
      cell: (token) => <TokenState token={token} />,
    },
    {
      id: 'actions',
      header: 'Actions',
      hiddenHeader: true,
      align: 'end',
      cell: (token) => <TokenMenu token={token} {...options} />,
    },
  ];
}

type TokenCellProps = ColumnOptions & { readonly token: AdminToken };

function TokenName({ token, ownId, mayChange, onAction }: TokenCellProps) {
  const name = <bdi>{token.name}</bdi>;
  return (
    <>
      {mayChange(token) ? <TextButton onClick={() => onAction('edit', token)}>{name}</TextButton> : name}{' '}
      {token.adminTokenId === ownId && <StatusBadge tone="accent">You</StatusBadge>}
      <SecondLine>
        {grantWords(token)} · <RelativeTime at={token.lastUsedAt} missing="Never used" />
      </SecondLine>
      <SecondLine>
        <TokenState token={token} />
      </SecondLine>
    </>
  );
}

function TokenMenu({ token, mayChange, onAction }: TokenCellProps) {
  const changes = [
    { label: 'Edit…', onSelect: () => onAction('edit', token) },
    { label: 'Rotate…', onSelect: () => onAction('rotate', token) },
  ];
  return (
    <Menu
      trigger={
        <Button look="quiet" small icon aria-label={`Actions for ${token.name}`}>
          <EllipsisVertical aria-hidden="true" />
        </Button>
      }
      items={[
        ...(mayChange(token) ? changes : []),
        { label: 'Revoke…', onSelect: () => onAction('revoke', token), danger: true },
      ]}
    />
  );
}

function TokenState({ token: { expiresAt, rotation } }: { readonly token: AdminToken }) {
  if (expiresAt !== null && Date.parse(expiresAt) <= now())
    return <StatusBadge tone="failed">Expired</StatusBadge>;
  if (rotation !== null)
    return (
      <>
        <StatusBadge tone="limited">Two secrets</StatusBadge>
        <span className={styles.ends}>
          the old one ends {shortTime(Date.parse(rotation.previousValidUntil))}
        </span>
      </>
    );
  if (expiresAt === null) return <StatusBadge tone="allowed">Active</StatusBadge>;
  return (
    <>
      <StatusBadge tone="allowed">Active</StatusBadge>
      <span className={styles.ends}>ends {shortTime(Date.parse(expiresAt))}</span>
    </>
  );
}
