/** The request of each response that is open, by its body. */
const held = new WeakMap<ReadableStream, Request>();

/**
 * `fetch`, whose response the request's signal, or `attempt`, can abort until all of it has been read. In Node a request follows the signal
 * that it was made with only as long as something holds the request, so that a stream could not be aborted after a collection of garbage.
 */
export async function abortableFetch(request: Request, attempt = new AbortController()): Promise<Response> {
  const stop = () => attempt.abort(request.signal.reason);
  if (request.signal.aborted) stop();
  else request.signal.addEventListener('abort', stop, { once: true });
  const response = await fetch(request.clone(), { signal: attempt.signal });
  if (response.body !== null) held.set(response.body, request);
  return response;
}
