/** A response as a client reads it that knows which methods it has sent. */
export interface ReadResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly interim: readonly number[];
  readonly body: Buffer;
  /** A client would take it for a whole response. */
  readonly isComplete: boolean;
}

/** How a connection stands, as seen from the client. */
export type Ending = 'open' | 'fin' | 'reset';

/**
 * Reads the responses on one connection, in the order of the requests, by RFC 9112 and shares nothing with the gateway's parsers. A
 * response can be complete although the connection is still open.
 */
export class ResponseReader {
  readonly #methods: string[] = [];
  readonly #complete: ReadResponse[] = [];
  #chunks: Buffer[] = [];
  #ending: Ending = 'open';
  /** The client has ended its side. */
  hasEnded = false;
  /** What is no HTTP response, or comes without a request. */
  fault: string | undefined;

  /** The next response is to a request with this method. */
  expect(method: string): void {
    this.#methods.push(method);
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#read();
  }

  end(ending: Ending): void {
    if (this.#ending !== 'open') return;
    this.#ending = ending;
    this.#read();
  }

  get ending(): Ending {
    return this.#ending;
  }

  /** Responses that are complete, in order. */
  get complete(): readonly ReadResponse[] {
    return this.#complete;
  }

  /** The response that has begun and is not complete; undefined also while its head is not. */
  get begun(): ReadResponse | undefined {
    const bytes = this.#rest();
    return bytes.length === 0 ? undefined : this.#next(bytes)?.response;
  }

  #read(): void {
    for (let bytes = this.#rest(); bytes.length > 0 && this.fault === undefined; bytes = this.#rest()) {
      if (this.#methods.length <= this.#complete.length) {
        // A client that sends nothing for long gets a 408, and one that ends in mid-request a 400, without a request.
        const start = bytes.toString('latin1', 0, 13);
        if (start === 'HTTP/1.1 408 ' || (this.hasEnded && start === 'HTTP/1.1 400 ')) return;
        this.fault = `bytes behind the last response: ${JSON.stringify(bytes.toString('latin1', 0, 300))}`;
        return;
      }
      const read = this.#next(bytes);
      if (read === undefined || !read.response.isComplete) return;
      this.#complete.push(read.response);
      this.#chunks = [bytes.subarray(read.end)];
    }
  }

  #rest(): Buffer {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
    this.#chunks = bytes === undefined ? [] : [bytes];
    return bytes ?? Buffer.alloc(0);
  }

  #next(bytes: Buffer): { response: ReadResponse; end: number } | undefined {
    const interim: number[] = [];
    for (let at = 0; ; ) {
      const end = bytes.indexOf('\r\n\r\n', at, 'latin1');
      if (end === -1) return undefined;
      const head = readHead(bytes.toString('latin1', at, end));
      if (head === undefined) {
        this.fault = `no response: ${JSON.stringify(bytes.toString('latin1', at, at + 300))}`;
        return undefined;
      }
      at = end + 4;
      if (head.status >= 200 || head.status === 101) {
        const method = this.#methods[this.#complete.length] ?? 'GET';
        const body = this.#body(bytes.subarray(at), method, head);
        return { response: { ...head, interim, ...body }, end: at + body.length };
      }
      interim.push(head.status);
    }
  }

  #body(bytes: Buffer, method: string, { status, headers }: Head): Body {
    // The gateway may reject a request before it can know the method, and closes the connection then.
    const isRejected =
      !headers.has('x-token') && headers.get('connection') === 'close' && BEFORE_METHOD.has(status);
    if ((method === 'HEAD' && !isRejected) || status === 204 || status === 304)
      return { body: Buffer.alloc(0), length: 0, isComplete: true };
    if (method === 'HEAD') return { body: bytes, length: bytes.length, isComplete: true };
    if (status === 101) return { body: bytes, length: bytes.length, isComplete: false };
    if (headers.get('transfer-encoding') === 'chunked') return this.#chunked(bytes);
    const length = headers.get('content-length');
    if (length === undefined)
      return { body: bytes, length: bytes.length, isComplete: this.#ending === 'fin' };
    const body = bytes.subarray(0, Number(length));
    return { body, length: body.length, isComplete: body.length === Number(length) };
  }

  #chunked(bytes: Buffer): Body {
    const parts: Buffer[] = [];
    for (let at = 0; ; ) {
      const lineEnd = bytes.indexOf('\r\n', at, 'latin1');
      if (lineEnd === -1) return { body: Buffer.concat(parts), length: at, isComplete: false };
      const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
      const begin = lineEnd + 2;
      if (size === 0) {
        const isComplete = bytes.toString('latin1', begin, begin + 2) === '\r\n';
        return { body: Buffer.concat(parts), length: begin + 2, isComplete };
      }
      if (Number.isNaN(size)) {
        this.fault = 'a malformed chunk';
        return { body: Buffer.concat(parts), length: at, isComplete: false };
      }
      parts.push(bytes.subarray(begin, begin + size));
      at = begin + size + 2;
      if (at > bytes.length) return { body: Buffer.concat(parts), length: bytes.length, isComplete: false };
    }
  }
}

/** Statuses of rejections for which no method need be known. */
const BEFORE_METHOD: ReadonlySet<number> = new Set([400, 408, 431]);

type Head = Pick<ReadResponse, 'status' | 'headers'>;
type Body = { readonly body: Buffer; readonly length: number; readonly isComplete: boolean };

function readHead(text: string): Head | undefined {
  const [first = '', ...lines] = text.split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1];
  if (status === undefined) return undefined;
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = /^([^:\s]+): ?(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    headers.set(name.toLowerCase(), value);
  }
  return { status: Number(status), headers };
}
