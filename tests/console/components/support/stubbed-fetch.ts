import { afterEach, beforeEach } from '@jest/globals';
import { cleanup } from '@testing-library/react';
import './patience.ts';

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

/** For the tests of a file: `fetch` is stubbed, and has sent nothing before each of them, which leaves no page. */
export function withStubbedFetch() {
  const stub = respondTo(() => ({ status: 404, body: {} }));
  beforeEach(stub.forget);
  afterEach(cleanup);
  return stub;
}

/** Responds to all requests that the console sends, in place of a server. */
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
    forget: () => {
      sent.length = 0;
    },
    restore: () => {
      globalThis.fetch = original;
    },
  };
}
