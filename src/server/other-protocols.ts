import type { IncomingMessage } from 'node:http';
import { bytesBeingParsed } from '../http/node-internals.ts';

const OTHERS = ['RTSP/', 'ICE/'] as const;

/**
 * Whether a request line that Node took for one of HTTP/1.x says another protocol: its parser knows RTSP and ICE as well, and does not
 * say which it was. So this looks at the bytes that are being parsed, of which Node makes a copy: too expensive for every request, so it is used
 * only for HTTP versions that are rare. A request line that arrived in an earlier chunk is not seen, and counts as HTTP.
 */
export function isOtherProtocol({ method = '', url = '', socket }: IncomingMessage): boolean {
  const bytes = bytesBeingParsed(socket);
  if (bytes === undefined || !OTHERS.some((name) => bytes.includes(name, 0, 'latin1'))) return false;
  const line = new RegExp(
    `(?:^|[\\r\\n])${RegExp.escape(method)} +${RegExp.escape(url)} +(?:${OTHERS.join('|')})`,
  );
  return line.test(bytes.toString('latin1'));
}
