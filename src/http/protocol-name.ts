import type { IncomingMessage } from 'node:http';
import { bytesBeingParsed } from './parsed-bytes.ts';

const OTHERS = ['RTSP/', 'ICE/'] as const;

/**
 * Whether a request line that Node took for one of HTTP/1.x says another protocol: its parser knows RTSP and ICE as well, and does not
 * tell. So this looks at the bytes that are being parsed, of which Node makes a copy: too dear for every request, so it is meant for
 * those of a version that hardly anybody uses. A request line that came in an earlier piece is not seen, and taken for one of HTTP.
 */
export function saysAnotherProtocol({ method = '', url = '', socket }: IncomingMessage): boolean {
  const bytes = bytesBeingParsed(socket);
  if (bytes === undefined || !OTHERS.some((name) => bytes.includes(name, 0, 'latin1'))) return false;
  const line = new RegExp(
    `(?:^|[\\r\\n])${RegExp.escape(method)} +${RegExp.escape(url)} +(?:${OTHERS.join('|')})`,
  );
  return line.test(bytes.toString('latin1'));
}
