import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { TollgateError } from '../errors.ts';

/*
 * The undocumented parts of Node that the gateway relies on. `checkNodeInternals` tries each of them at the start. Checked on Node 24.21
 * and 26.10.
 *
 * | part | why |
 * |---|---|
 * | `ServerResponse._storeHeader` | puts lines that are known to be valid into a head; `setHeader` would check and join each again |
 * | `ServerResponse._header`, `_headerSent`, `_hasBody` | put a stored head into the buffer of its body, so that both are one plain write |
 * | `ServerResponse._keepAliveTimeout` | what `Keep-Alive` says, while the server's own timer, set twice for each request, stays off |
 * | `Socket._httpMessage` | the response that a connection is sending, or sends next |
 * | `Socket.parser.incoming` | the request whose head was parsed last: its body may still be on its way when its response is over |
 * | `Server[http.server.connections].idle` | the connections on which no request has begun: only the parser knows that |
 * | `Socket.parser.getCurrentBuffer` | the bytes being parsed: to recognise other protocols, and bytes lost after a declined upgrade |
 * | `Socket._handle.bytesWritten`, `.writeQueueSize` | bytes of a write that the system has taken: `writableLength` falls only at its end |
 * | `Socket._handle.getpeername` | fails once a connection was reset, even while nothing is read from it |
 */

const storeHeader: unknown = Reflect.get(ServerResponse.prototype, '_storeHeader');

/** A response that adds lines to its head as they are. */
class HeadLinesResponse extends ServerResponse {
  /** Node's own. Milliseconds; 0 = the response has no `Keep-Alive`. */
  declare protected _keepAliveTimeout: number;
  /** Node's own: the head once it is stored, whether it was sent, and whether a response like this may have a body. */
  declare protected _header: string | null;
  declare protected _headerSent: boolean;
  declare protected _hasBody: boolean;
  /** Valid header lines, each with its CRLF. They follow the status line. */
  protected headLines = '';

  /** Sets the timeout that `Keep-Alive` announces. Milliseconds. */
  announceKeepAlive(ms: number): void {
    this._keepAliveTimeout = ms;
  }

  /**
   * Ends a response whose head is stored but not sent, with a body that is part of `bytes`: the head overwrites the bytes right before
   * the body. Does nothing and returns false if the head does not fit there, or if the body is chunked or must not be sent.
   */
  endBehindHead(bytes: Buffer, body: Buffer): boolean {
    const head = this._header;
    const from = body.byteOffset - bytes.byteOffset;
    if (head === null || this._headerSent || head.length > from) return false;
    if (this.chunkedEncoding || !this._hasBody || body.buffer !== bytes.buffer) return false;
    const start = from - head.length;
    bytes.write(head, start, 'latin1');
    this._headerSent = true;
    this.end(bytes.subarray(start, from + body.length));
    return true;
  }

  _storeHeader(statusLine: string, headers: unknown): void {
    Reflect.apply(storeHeader as () => void, this, [statusLine + this.headLines, headers]);
  }
}

/** The response that a connection of a server is sending, or sends next; undefined when none is due. */
export function responseDue(socket: Socket): ServerResponse | undefined {
  const due: unknown = Reflect.get(socket, '_httpMessage');
  return due instanceof ServerResponse ? due : undefined;
}

/** The exchange that a response belongs to; undefined for another one, such as those of Express, which replaces their prototype. */
export function ownerOf(due: ServerResponse): RawHeadResponse['owner'] {
  return due instanceof RawHeadResponse ? due.owner : undefined;
}

/** The request of a connection whose head was parsed last; undefined before the first one, and for a socket without a parser. */
export function lastRequest(socket: Socket): IncomingMessage | undefined {
  const parser: unknown = Reflect.get(socket, 'parser');
  if (typeof parser !== 'object' || parser === null || !('incoming' in parser)) return undefined;
  return parser.incoming instanceof IncomingMessage ? parser.incoming : undefined;
}

/** Connections of a server that have read their last request completely and begun no other. Some may never have had a request. */
export function socketsBetweenRequests(server: Server): readonly Socket[] {
  return (idleParsers(server) ?? []).flatMap(({ socket }) => (socket instanceof Socket ? [socket] : []));
}

interface IdleParser {
  readonly socket: unknown;
}

function idleParsers(server: Server): readonly IdleParser[] | undefined {
  const symbols = Object.getOwnPropertySymbols(server);
  const name = symbols.find(({ description }) => description === 'http.server.connections');
  const idle = resultOf(name && Reflect.get(server, name), 'idle');
  return Array.isArray(idle) ? idle : undefined;
}

/** A copy of the chunk that Node's parser is parsing, in one of its callbacks. Otherwise, and for a socket without parser, undefined. */
export function bytesBeingParsed(socket: Socket): Buffer | undefined {
  const bytes = resultOf(Reflect.get(socket, 'parser'), 'getCurrentBuffer');
  return Buffer.isBuffer(bytes) ? bytes : undefined;
}

/** How much of what was written to a connection the system has taken. Bytes. */
export function bytesTaken(socket: Socket): number {
  return takenByHandle(socket) ?? socket.bytesWritten - socket.writableLength;
}

/** Undefined for a connection that has been closed, and has no handle any more. */
function takenByHandle(socket: Socket): number | undefined {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null) return undefined;
  if (!('bytesWritten' in handle && 'writeQueueSize' in handle)) return undefined;
  const { bytesWritten, writeQueueSize } = handle;
  if (typeof bytesWritten !== 'number' || typeof writeQueueSize !== 'number') return undefined;
  return bytesWritten - writeQueueSize;
}

/** Whether a connection of a server was reset, even while nothing is read from it. False where that can't be known. */
export function isDisconnected(socket: Socket): boolean {
  const status = resultOf(Reflect.get(socket, '_handle'), 'getpeername', {});
  return typeof status === 'number' && status < 0;
}

/** What a method of an undocumented part returns; undefined if there is no such part, or it has no such method. */
function resultOf(part: unknown, name: string, ...args: readonly object[]): unknown {
  const method: unknown = typeof part === 'object' && part !== null ? Reflect.get(part, name) : undefined;
  return typeof method === 'function' ? Reflect.apply(method, part, args) : undefined;
}

const PROBE = 'GET /probe HTTP/1.1\r\nHost: probe\r\nConnection: Upgrade\r\nUpgrade: probe\r\n\r\n';
const PROBED_RESPONSE =
  'HTTP/1.1 200 OK\r\nX-Probe: 1\r\nContent-Length: 5\r\nConnection: keep-alive\r\nKeep-Alive: timeout=7\r\n\r\nprobe';

/** Sends a request through a server that listens nowhere. Rejects when one of the parts above differs in this version of Node. */
export async function checkNodeInternals(): Promise<void> {
  const server = createServer({ ServerResponse: ProbeResponse, shouldUpgradeCallback: keepBytes });
  let parsed: Buffer | undefined;
  function keepBytes(req: IncomingMessage): boolean {
    parsed = bytesBeingParsed(req.socket);
    return false;
  }
  // A server keeps a list of its connections only after this event.
  server.emit('listening');
  const response = await new Promise<string>((resolve) => {
    const socket = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        resolve(chunk.toString('latin1'));
        done();
      },
    });
    server.on('request', (req, res) => {
      if (parsed?.toString('latin1') !== PROBE) resolve('parser.getCurrentBuffer');
      else if (responseDue(req.socket) !== res) resolve('_httpMessage');
      else if (lastRequest(req.socket) !== req) resolve('parser.incoming');
      else res.respond();
    });
    server.emit('connection', socket);
    socket.push(PROBE);
  });
  const idle = idleParsers(server);
  server.close();
  if (response !== PROBED_RESPONSE) throw hasChanged(response);
  if (idle?.length !== 1) throw hasChanged('http.server.connections');
  if (!countsTaken()) throw hasChanged('_handle.writeQueueSize');
  if (!knowsPeer()) throw hasChanged('_handle.getpeername');
}

function hasChanged(part: string): Error {
  return new Error(
    `Node ${process.versions.node} has changed a part of its HTTP server that this version of Tollgate relies on. Use another version of Node, or of Tollgate. (${part})`,
  );
}

/** A socket gets its handle before it is known whether there is anything to connect to. */
function countsTaken(): boolean {
  const socket = new Socket();
  socket.on('error', () => {});
  socket.connect({ path: 'nowhere' });
  const taken = takenByHandle(socket);
  socket.destroy();
  return taken === 0;
}

/** A socket has no peer before it is connected. */
function knowsPeer(): boolean {
  const socket = new Socket();
  socket.on('error', () => {});
  socket.connect({ port: 1, host: '127.0.0.1' });
  const isWithoutPeer = isDisconnected(socket);
  socket.destroy();
  return isWithoutPeer;
}

class ProbeResponse extends HeadLinesResponse {
  respond(): void {
    this.headLines = 'X-Probe: 1\r\n';
    this.sendDate = false;
    this.announceKeepAlive(7000);
    this.writeHead(200, ['Content-Length', '5']);
    const bytes = Buffer.from(`${' '.repeat(PROBED_RESPONSE.length)}probe`);
    if (!this.endBehindHead(bytes, bytes.subarray(-5))) this.end();
  }
}

/** One line of a head, with its CRLF. */
export function headerLine(name: string, value: string): string {
  return `${name}: ${value}\r\n`;
}

/** Whether Node decides by this header how a response is framed. Such a header must be given to Node by name. */
export function decidesHead(lowerCaseName: string): boolean {
  return DECISIVE.has(lowerCaseName);
}

const DECISIVE: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'trailer',
  'transfer-encoding',
]);

/**
 * A response whose headers may be given as lines, so that Node does not check and join each of them. The lines are sent as they are, right
 * after the status line, so they must be valid.
 */
export class RawHeadResponse extends HeadLinesResponse {
  /** The exchange, which rejects its request when the connection stalls or becomes unreadable. Undefined for other requests. */
  owner: { reject(error: TollgateError): void } | undefined = undefined;

  /**
   * Writes the head. `lines` are made of `headerLine`s, none with a decisive name; `decisive` is a flat list of names and values. `reason`
   * undefined means the usual one of the status. Where `lines` has a `Date`, `sendDate` must be false.
   */
  writeLines(status: number, reason: string | undefined, lines: string, decisive: string[]): void {
    this.headLines = lines;
    if (reason === undefined) this.writeHead(status, decisive);
    else this.writeHead(status, reason, decisive);
  }

  /** Sends the head before there is a body. As latin1 it keeps its bytes: Node's own method would encode it as UTF-8. */
  override flushHeaders(): void {
    this.write('', 'latin1');
  }
}
