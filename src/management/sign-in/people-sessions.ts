import { MissingScope, SessionNotFound } from '../../errors.ts';
import type { Principal } from '../../permissions/principal.ts';
import { SCOPES } from '../../permissions/scopes.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import { isSessionId, type Session } from '../../sign-in/signed-in-session.ts';
import { type Endpoint, Reply } from '../endpoint.ts';
import { pageSchema, readListPage } from '../list-page.ts';
import { COUNTED_PAGE_QUERY } from '../page-query.ts';
import { INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { END_OF_SESSION_COOKIE } from './sign-in-app.ts';

const SESSION = named(
  'Session',
  objectOf({
    sessionId: TEXT,
    current: { type: 'boolean', description: 'Whether the request belongs to it.' },
    kind: {
      type: 'string',
      enum: ['browser', 'command'],
      description: 'Whether the person signed in to the console or with the command.',
    },
    subject: { ...TEXT, description: 'As the identity provider knows the person.' },
    name: TEXT,
    email: orNull(TEXT),
    scopes: listOf({ type: 'string', enum: SCOPES }),
    onlyTags: listOf(TEXT),
    address: { ...TEXT, description: 'From which the person signed in.' },
    createdAt: INSTANT,
    lastUsedAt: { ...INSTANT, description: 'To five minutes.' },
    expiresAt: INSTANT,
  }),
);

/** Lists the sessions of people: all, or only one's own without `tokens:write`. */
export const listSessions: Endpoint = {
  method: 'get',
  path: '/tollgate/session',
  operationId: 'listSessions',
  summary: 'List who has signed in: everyone, or without tokens:write only oneself',
  scope: null,
  query: COUNTED_PAGE_QUERY,
  status: 200,
  response: pageSchema('sessions', SESSION),
  // Without an identity provider there is no such path.
  errors: ['invalid_cursor', 'not_found'],
  async handle({ query, principal }, { sessions }) {
    const ownId = ownSessionId(principal);
    const maySeeAll = principal.scopes.has('tokens:write');
    const visible = ownId === undefined && !maySeeAll ? undefined : sessions;
    const chosen = maySeeAll ? { onlyTags: principal.onlyTags } : { onlyTags: [], id: ownId };
    const { items, about } = await readListPage(query, {
      list: async (page) => visible?.list({ ...chosen, ...page }) ?? [],
      count: async () => visible?.count(chosen) ?? 0,
      isId: isSessionId,
      idOf: ({ id }) => id,
    });
    return { sessions: items.map((session) => presentSession(session, ownId)), ...about };
  },
};

function ownSessionId({ type, id }: Principal): string | undefined {
  return type === 'person' ? (id ?? undefined) : undefined;
}

function presentSession(session: Session, ownId: string | undefined): object {
  const { id: sessionId, kind, subject, name, email, scopes, onlyTags, address } = session;
  return {
    ...{ sessionId, current: sessionId === ownId, kind, subject, name, email, scopes, onlyTags, address },
    createdAt: isoSeconds(session.createdAtMs),
    lastUsedAt: isoSeconds(session.lastUsedAtMs),
    expiresAt: isoSeconds(session.expiresAtMs),
  };
}

/** Ends a session. Everyone may end their own, which signs them out. */
export const endSession: Endpoint = {
  method: 'delete',
  path: '/tollgate/session/{sessionId}',
  operationId: 'endSession',
  summary: 'End a session: one\'s own as "current", or with tokens:write any',
  scope: null,
  status: 200,
  response: objectOf({ sessionId: TEXT, message: TEXT }),
  errors: ['missing_scope', 'session_not_found'],
  async handle({ id, principal, change }, { sessions, log }) {
    const ownId = ownSessionId(principal);
    const sessionId = id === 'current' ? ownId : id;
    if (sessionId === undefined) throw new SessionNotFound();
    const isOwn = sessionId === ownId;
    if (!isOwn && !principal.scopes.has('tokens:write')) throw new MissingScope('tokens:write');
    if (sessions === undefined) throw new SessionNotFound();
    await sessions.end(sessionId, isOwn ? { ...change, onlyTags: [] } : change);
    log.info({ event: 'session_ended', sessionId }, 'a session was ended');
    const message = 'The session has ended.';
    return Reply.with(isOwn ? { 'Set-Cookie': END_OF_SESSION_COOKIE } : {}, { sessionId, message });
  },
};
