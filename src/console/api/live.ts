import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import { type Scope, useApi, useScopes } from './api-context.tsx';
import { faultKind, requiredScope } from './fault-kind.ts';
import { type Followed, pollBeside, useFollowed } from './followed.ts';

export const POLL_MS = 5000;

/** A call of the generated client: `(client, signal) => client.GET('/rate-limit', { signal })`. */
export type Call<T> = (
  client: ManagementClient,
  signal: AbortSignal,
) => Promise<{ readonly data?: T; readonly error?: unknown; readonly response: Response }>;

/**
 * `loading`: no data yet. `refreshing`: data for another filter or page is shown until the requested data arrives. `unavailable`: the
 * gateway or a store does not respond, and `data` is the last known data, if any. `failed`: the request itself is wrong.
 */
type LiveStatus = 'loading' | 'ready' | 'refreshing' | 'no-scope' | 'unavailable' | 'not-found' | 'failed';

export interface Live<T> {
  readonly status: LiveStatus;
  readonly data: T | undefined;
  /** When `data` was read, in milliseconds; undefined without data. */
  readonly dataAt: number | undefined;
  /** The entity tag of `data`, for `If-Match`; undefined if the endpoint has none. */
  readonly etag: string | undefined;
  readonly error: unknown;
  /** For `no-scope`: the scope that the token lacks. */
  readonly requiredScope: string | undefined;
  readonly refresh: () => void;
}

export interface LiveOptions {
  /** Without this scope no request is sent. */
  readonly scope?: Scope;
  /** 5000 by default. False: read once, and again only on `refresh`. */
  readonly pollMs?: number | false;
  /** False: no request for now, for example because a part of it is not chosen yet. */
  readonly enabled?: boolean;
  /** The events that change the data: it is read again with each, and polled only every minute, while the stream of events is open. */
  readonly follows?: Followed;
}

/** Reads data of the management interface, and again every 5 s while the tab is visible. `key` identifies it in the cache. */
export function useLive<T>(
  key: readonly unknown[],
  call: Call<T>,
  options: LiveOptions = {},
): Live<NonNullable<T>> {
  const { client } = useApi();
  const queries = useQueryClient();
  const allowed = useScopes().can(options.scope);
  const readAgain = () => void queries.invalidateQueries({ queryKey: key, exact: true });
  const isFollowed = useFollowed(options.follows, { onEvents: readAgain, onOpen: readAgain });
  const query = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => readTagged(call(client, signal)),
    enabled: allowed && options.enabled !== false,
    refetchInterval: ({ state }) => pollAfter(state.error, pollBeside(isFollowed, options.pollMs ?? POLL_MS)),
    placeholderData: keepPreviousData,
  });
  const data = shownData(query);
  return {
    ...useStatus(query, data, { allowed, scope: options.scope }),
    data: data?.body,
    etag: data?.etag,
    refresh: () => void query.refetch(),
  };
}

/** What the cache holds of a response. */
export interface Tagged<T> {
  readonly body: NonNullable<T>;
  readonly etag: string | undefined;
}

/** The body and the entity tag of a successful response. Throws a `ManagementFault` for any other. */
export async function readTagged<T>(call: ReturnType<Call<T>>): Promise<Tagged<T>> {
  const body = await bodyOf(call);
  return { body, etag: (await call).response.headers.get('etag') ?? undefined };
}

/**
 * False after a 403: the audit log has an entry for each one. The data is read again when the tab comes into view, or when the token gets the
 * scope.
 */
export function pollAfter(error: unknown, pollMs: number | false): number | false {
  return error !== null && faultKind(error) === 'no-scope' ? false : pollMs;
}

interface QueryState {
  readonly error: unknown;
  /** How often it has failed. */
  readonly errorUpdateCount: number;
  /** When it last failed; also while it is read again. */
  readonly errorUpdatedAt: number;
  readonly isPlaceholderData: boolean;
  readonly dataUpdatedAt: number;
}

/** The data of a query; that of the filter before only until this one has failed: each poll would show it again. */
export function shownData<Data>({
  data,
  isPlaceholderData,
  errorUpdateCount,
}: QueryState & { readonly data: Data }): Data | undefined {
  return isPlaceholderData && errorUpdateCount > 0 ? undefined : data;
}

/** What the page shows of a query with this data. */
export function useStatus(
  query: QueryState,
  data: unknown,
  { allowed, scope }: { readonly allowed: boolean; readonly scope: Scope | undefined },
) {
  const dataAt = data === undefined || query.dataUpdatedAt === 0 ? undefined : query.dataUpdatedAt;
  const error = useShownError(query, data);
  return {
    status: allowed ? liveStatus(query, data, error) : ('no-scope' as const),
    dataAt,
    error,
    requiredScope: allowed ? requiredScope(error) : scope,
  };
}

/** While a query that has no data yet is read again, the error of the last time stays: otherwise each poll would take "Try again" away. */
function useShownError({ error, errorUpdatedAt }: QueryState, data: unknown): unknown {
  const [last, setLast] = useState<{ readonly error: unknown; readonly at: number }>();
  if (error !== null && error !== last?.error) setLast({ error, at: errorUpdatedAt });
  // Of this query, and not of the one with the filter before.
  const isLast = last !== undefined && last.at === errorUpdatedAt;
  return error ?? (data === undefined && isLast ? last.error : null);
}

function liveStatus({ isPlaceholderData }: QueryState, data: unknown, error: unknown): LiveStatus {
  if (error === null || error === undefined) {
    if (data === undefined) return 'loading';
    return isPlaceholderData ? 'refreshing' : 'ready';
  }
  const kind = faultKind(error);
  if (kind === 'no-scope' || kind === 'not-found' || kind === 'unavailable') return kind;
  // A 401 has already ended the session, and the sign-in page is about to appear.
  return kind === 'unauthorized' ? 'loading' : 'failed';
}
