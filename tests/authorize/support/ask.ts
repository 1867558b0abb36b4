import { type Agent, type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** A response of the port for other gateways. */
export interface Asked {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
  readonly body: any;
}

/** A flat list of names and values where a name is to be sent twice. */
type Fields = Readonly<Record<string, string>> | readonly string[];

interface Sent {
  readonly method?: string;
  readonly headers?: Fields;
  readonly agent?: Agent;
  /** The client's address, one of loopback; 127.0.0.1 by default. */
  readonly from?: string;
}

/** Sends a request exactly as given: `fetch` would normalise the path and reject some fields. */
export async function ask(
  url: string,
  path: string,
  { method = 'GET', headers = {}, agent, from }: Sent = {},
): Promise<Asked> {
  const { hostname, port } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<Asked>();
  const sent = request(
    {
      ...{ hostname, port, path, method, agent: agent ?? false },
      ...(from !== undefined && { localAddress: from }),
      headers: Array.isArray(headers) ? ['Host', 'authorize', ...headers] : { ...headers },
    },
    (response) => {
      text(response).then((body) => {
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: body,
          body: body.startsWith('{') ? JSON.parse(body) : undefined,
        });
      }, reject);
    },
  );
  sent.on('error', reject).end();
  return promise;
}

/** The fields with which a gateway asks about a request, and the consumer's key. */
export function original(
  secret: string | undefined,
  uri = '/v1/orders?x=1',
  method = 'GET',
): Record<string, string> {
  return {
    'x-original-method': method,
    'x-original-uri': uri,
    ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
  };
}
