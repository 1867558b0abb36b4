/** What the head of a request to the backend is made of. */
export interface OutgoingHeadParts {
  readonly method: string;
  /** With the path of the backend's URL in front. */
  readonly target: string;
  /** Of the backend. */
  readonly host: string;
  /** Names and values in turn, without those that belong to this hop. */
  readonly fields: readonly string[];
  /** `length`: `Content-Length` is among the fields. */
  readonly body: 'none' | 'length' | 'chunked';
  readonly isUpgrade: boolean;
}

/** Methods of which a server may expect to be told that there is no body (RFC 9110 section 8.6). */
const WITH_LENGTH: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** The head as it goes over the wire, in latin1: the same bytes as the client's where they are the client's. */
export function outgoingHead({ method, target, host, fields, body, isUpgrade }: OutgoingHeadParts): string {
  const connection = isUpgrade ? 'upgrade\r\nupgrade: websocket' : 'keep-alive';
  let head = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${connection}\r\n`;
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`;
  if (body === 'chunked') return `${head}transfer-encoding: chunked\r\n\r\n`;
  if (body === 'none' && WITH_LENGTH.has(method)) return `${head}content-length: 0\r\n\r\n`;
  return `${head}\r\n`;
}
