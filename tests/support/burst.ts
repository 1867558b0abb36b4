import { Pool } from 'undici';

/** How often each status was received. */
export type StatusCounts = Readonly<Record<number, number>>;

/**
 * Sends `requests` requests with a key, spread over the URLs in turn, with at most `inFlight` unanswered at any time. Resolves with the
 * statuses once all have a response; rejects when one is not.
 */
export async function burst(
  urls: readonly string[],
  {
    secret,
    requests,
    inFlight,
  }: { readonly secret: string; readonly requests: number; readonly inFlight: number },
): Promise<StatusCounts> {
  const pools = urls.map((url) => new Pool(url, { connections: Math.ceil(inFlight / urls.length) }));
  const counts: Record<number, number> = {};
  let sent = 0;
  const sender = async (): Promise<void> => {
    while (sent < requests) {
      const pool = pools[sent % pools.length];
      sent += 1;
      const response = await pool?.request({
        method: 'GET',
        path: '/',
        headers: { authorization: `Bearer ${secret}` },
      });
      if (response === undefined) throw new Error('burst needs a URL');
      await response.body.dump();
      counts[response.statusCode] = (counts[response.statusCode] ?? 0) + 1;
    }
  };
  try {
    await Promise.all(Array.from({ length: inFlight }, sender));
    return counts;
  } finally {
    await Promise.all(pools.map((pool) => pool.destroy()));
  }
}

/** The status of one request with a key, once its response is complete: the gateway counts it no earlier. */
export async function statusOf(
  url: string,
  secret: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const response = await fetch(url, { headers: { ...headers, authorization: `Bearer ${secret}` } });
  await response.arrayBuffer();
  return response.status;
}
