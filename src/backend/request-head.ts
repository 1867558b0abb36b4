import { mayKeepAfter } from './connection-reuse.ts';

/** The framing of a request's body: no body, its length in bytes, or chunked. */
type BodyFraming = 'none' | 'chunked' | number;

/** What the head of a request to the backend is made of. */
export interface RequestHeadParts {
  readonly method: string;
  /** With the path of the backend's URL in front. */
  readonly target: string;
  /** Host of the backend. */
  readonly host: string;
  /** Each with its CRLF, without hop-by-hop and framing headers. */
  readonly headerLines: string;
  readonly body: BodyFraming;
  readonly isUpgrade: boolean;
  /** Whether a trailer of the response says what the request costs: some servers send trailers only to those who ask (RFC 9110 10.1.4). */
  readonly takesTrailers: boolean;
}

/** Methods that need `Content-Length: 0` when there is no body (RFC 9110 section 8.6). */
const WITH_LENGTH: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** The head as it is sent, in latin1. What comes from the client keeps its bytes. */
export function requestHead({
  method,
  target,
  host,
  headerLines,
  body,
  isUpgrade,
  takesTrailers,
}: RequestHeadParts): string {
  const connection = connectionLines(mayKeepAfter(method, body !== 'none'), isUpgrade, takesTrailers);
  const head = `${method} ${target} HTTP/1.1\r\nhost: ${host}${connection}${headerLines}`;
  if (body === 'chunked') return `${head}Transfer-Encoding: chunked\r\n\r\n`;
  if (body !== 'none') return `${head}Content-Length: ${body}\r\n\r\n`;
  return WITH_LENGTH.has(method) ? `${head}content-length: 0\r\n\r\n` : `${head}\r\n`;
}

/** The connection headers, beginning with the CRLF of the line before them. */
function connectionLines(isKept: boolean, isUpgrade: boolean, takesTrailers: boolean): string {
  if (isUpgrade) return '\r\nconnection: upgrade\r\nupgrade: websocket\r\n';
  if (takesTrailers) return `\r\nconnection: ${isKept ? 'keep-alive' : 'close'}, te\r\nte: trailers\r\n`;
  return isKept ? '\r\nconnection: keep-alive\r\n' : '\r\nconnection: close\r\n';
}
