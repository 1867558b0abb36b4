import type { CustomFetchOptions } from 'openid-client';
import { SignInFailure } from './sign-in-failure.ts';

/** The longest response that is read, once decompressed: beyond any ID token with thousands of groups. */
const MAX_RESPONSE_BYTES = 1_048_576;

/** What `openid-client` and `jose` say of a request. */
type BoundedFetchOptions = Pick<CustomFetchOptions, 'method' | 'redirect' | 'signal'> & {
  readonly headers: Headers | CustomFetchOptions['headers'];
  readonly body?: CustomFetchOptions['body'];
};

/**
 * `fetch` for the provider, which resolves once the body is there. Rejects with `SignInFailure` for a longer one, of which no more is
 * kept in memory, and for a status above 599, which HTTP does not have.
 */
export async function boundedFetch(
  url: string,
  { body = null, ...init }: BoundedFetchOptions,
): Promise<Response> {
  const response = await fetch(url, { ...init, body });
  const { status, headers } = response;
  // `fetch` passes on a status that `Response` does not accept.
  if (status > 599) throw new SignInFailure('provider_unavailable', `status ${status}`);
  if (response.body === null) return response;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of response.body) {
    bytes += chunk.byteLength;
    if (bytes > MAX_RESPONSE_BYTES)
      throw new SignInFailure('provider_unavailable', `a response of more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return new Response(Buffer.concat(chunks), { status, headers });
}
