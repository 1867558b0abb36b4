import { keepPreviousData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import { useApi, useScopes } from './api-context.tsx';
import { pollBeside, useFollowed } from './followed.ts';
import { type Call, type Live, type LiveOptions, POLL_MS, pollAfter, shownData, useStatus } from './live.ts';

const PAGE_ROWS = 100;

/** The part of a query that chooses a page of a list. */
interface PageQuery {
  readonly limit: number;
  /** Of a later page than the first. */
  readonly cursor?: string;
}

export interface LivePages<Row> extends Live<readonly Row[]> {
  /** The rows on all pages, if the request has `count`. */
  readonly total: number | undefined;
  readonly hasMore: boolean;
  /** The last request was for the next page, and failed. */
  readonly hasNextPageFailed: boolean;
  readonly loadMore: () => void;
  /** Whether the stream of events tells of changes at once. */
  readonly isFollowed: boolean;
  /** Something has changed since the rows were read, and they are not read again by themselves, because there are many. */
  readonly isBehind: boolean;
}

/** The rows, the total and the cursor in a response of a list. */
interface ListPage<Row> {
  readonly rows: readonly Row[];
  readonly total?: number | undefined;
  readonly nextCursor?: string | undefined;
}

export interface LivePagesOptions<T, Row> extends LiveOptions {
  readonly page: (body: NonNullable<T>) => ListPage<Row>;
}

/**
 * A list that grows page by page as the reader scrolls. It is read again by itself only while a single page is shown: otherwise each poll, and
 * each return to the tab, would read all loaded pages again and move the rows. Then the reader reads again with `refresh`.
 */
export function useLivePages<T, Row>(
  key: readonly unknown[],
  call: (client: ManagementClient, query: PageQuery, signal: AbortSignal) => ReturnType<Call<T>>,
  { page, ...options }: LivePagesOptions<T, Row>,
): LivePages<Row> {
  const { client } = useApi();
  const allowed = useScopes().can(options.scope);
  const { isFollowed, oldPage, forgetOldPage } = useFollowedPages(key, options.follows);
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: async ({ signal, pageParam: cursor }) => {
      const query = { limit: PAGE_ROWS, ...(cursor !== undefined && { cursor }) };
      return page(await bodyOf(call(client, query, signal)));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.nextCursor,
    enabled: allowed && options.enabled !== false,
    refetchOnWindowFocus: ({ state }) => !isLong(state.data),
    refetchInterval: ({ state }) =>
      isLong(state.data) ? false : pollAfter(state.error, pollBeside(isFollowed, options.pollMs ?? POLL_MS)),
    placeholderData: keepPreviousData,
  });
  const data = shownData(query);
  return {
    ...useStatus(query, data, { allowed, scope: options.scope }),
    data: data?.pages.flatMap(({ rows }) => rows),
    etag: undefined,
    total: data?.pages[0]?.total,
    isFollowed,
    isBehind: oldPage !== undefined && data?.pages[0] === oldPage,
    hasMore: query.hasNextPage,
    hasNextPageFailed: query.isFetchNextPageError,
    loadMore: () => {
      if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
    },
    refresh: () => {
      forgetOldPage();
      void query.refetch();
    },
  };
}

interface Pages {
  readonly pages: readonly unknown[];
}

/** Whether more than one page is loaded. */
function isLong(data: Pages | undefined): boolean {
  return data !== undefined && data.pages.length > 1;
}

/** Reads a list of one page again with each event that changes it. Of a longer list it keeps which first page is not the newest. */
function useFollowedPages(key: readonly unknown[], follows: LiveOptions['follows']) {
  const queries = useQueryClient();
  const [oldPage, setOldPage] = useState<unknown>();
  const readAgain = () => {
    const data = queries.getQueryData<Pages>(key);
    if (isLong(data)) return data?.pages[0];
    void queries.invalidateQueries({ queryKey: key, exact: true });
    return undefined;
  };
  const isFollowed = useFollowed(follows, {
    onEvents: () => setOldPage(readAgain()),
    onOpen: () => void readAgain(),
  });
  return { isFollowed, oldPage, forgetOldPage: () => setOldPage(undefined) };
}
