import type { Socket } from 'node:net';

/**
 * A copy of the bytes that Node's parser is at while it calls back: it keeps them for the errors that it reports. Undefined where it
 * does not tell.
 */
export function bytesBeingParsed(socket: Socket): Buffer | undefined {
  const parser: unknown = Reflect.get(socket, 'parser');
  if (!hasBuffer(parser)) return undefined;
  const bytes = parser.getCurrentBuffer();
  return Buffer.isBuffer(bytes) ? bytes : undefined;
}

function hasBuffer(parser: unknown): parser is { getCurrentBuffer(): unknown } {
  return (
    typeof parser === 'object' &&
    parser !== null &&
    'getCurrentBuffer' in parser &&
    typeof parser.getCurrentBuffer === 'function'
  );
}
