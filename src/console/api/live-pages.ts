import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import { useApi } from './api-context.tsx';
import { type Call, type Live, type LiveOptions, POLL_MS, pollAfter, statusOf, useAllowed } from './live.ts';

/** Rows that a page of a list asks for. */
export const PAGE_ROWS = 100;

export interface LivePages<Row> extends Live<readonly Row[]> {
  /** The rows on all pages, if the request has `count`. */
  readonly total: number | undefined;
  readonly hasMore: boolean;
  readonly loadMore: () => void;
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
 * A list that grows page by page as the reader scrolls. It polls only while a single page is shown: otherwise each poll would read all
 * loaded pages again. Then the reader reads again with `refresh`.
 */
export function useLivePages<T, Row>(
  key: readonly unknown[],
  call: (client: ManagementClient, cursor: string | undefined, signal: AbortSignal) => ReturnType<Call<T>>,
  { page, ...options }: LivePagesOptions<T, Row>,
): LivePages<Row> {
  const { client } = useApi();
  const allowed = useAllowed(options.scope);
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: async ({ signal, pageParam }) => page(await bodyOf(call(client, pageParam, signal))),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.nextCursor,
    enabled: allowed && options.enabled !== false,
    refetchInterval: ({ state }) =>
      (state.data?.pages.length ?? 0) > 1 ? false : pollAfter(state.error, options.pollMs ?? POLL_MS),
    placeholderData: keepPreviousData,
  });
  return {
    ...statusOf(query, allowed, options.scope),
    data: query.data?.pages.flatMap(({ rows }) => rows),
    etag: undefined,
    total: query.data?.pages[0]?.total,
    hasMore: query.hasNextPage,
    loadMore: () => {
      if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
    },
    refresh: () => void query.refetch(),
  };
}
