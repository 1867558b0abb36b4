interface StubbedResponse {
  readonly status: number;
  readonly body: object;
}

type Respond = (request: Request) => StubbedResponse | Promise<StubbedResponse>;

/** A request as the console has given it to `fetch`. */
interface SentRequest {
  readonly call: string;
  readonly headers: Headers;
  readonly credentials: RequestCredentials;
}

/** Responds to the requests that the console sends to the origin of its page, where no server is in these tests. */
export function respondTo(first: Respond) {
  const { fetch: original } = globalThis;
  const sent: SentRequest[] = [];
  let respond = first;
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const { method, headers, url, credentials } = request;
    sent.push({ call: `${method} ${new URL(url).pathname}`, headers, credentials });
    const { status, body } = await respond(request);
    return Response.json(body, { status, headers: { 'X-Request-Id': 'stubbed' } });
  };
  return {
    sent: sent as readonly SentRequest[],
    /** From now on. */
    respond: (next: Respond) => {
      respond = next;
    },
    restore: () => {
      globalThis.fetch = original;
    },
  };
}
