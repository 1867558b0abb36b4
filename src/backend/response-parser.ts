import { BackendError } from './backend-error.ts';
import {
  isHeaderLine,
  RESPONSE_HEAD_LIMIT_BYTES,
  type ResponseHead,
  readResponseHead,
} from './response-head.ts';

/** Receives the parts of a response in order. May end the parsing by `stop`. */
export interface ResponseParts {
  /** An interim response (1xx, but not 101). */
  onInterim(head: ResponseHead): void;
  onHead(head: ResponseHead): void;
  /** A chunk of the body, never empty, without its framing. */
  onBody(chunk: Buffer): void;
  /** A trailer, as a line without its end. */
  onTrailer?(line: string): void;
  /** The response is complete. `rest` came after it and belongs to no response; after a 101 it is the first bytes of the tunnel. */
  onEnd(rest: Buffer): void;
}

/** Where the parser is. */
type State = 'head' | 'fixed' | 'open' | 'size' | 'chunk' | 'chunk-end' | 'trailers' | 'done';

/** A buffer, because a string would be converted for each search. */
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);
/** Size and extensions (RFC 9112 section 7.1), without the whitespace that senders must not generate. */
const SIZE_LINE =
  /^([0-9A-Fa-f]{1,13})(?:;[!#$%&'*+.^_`|~\w-]+(?:=(?:[!#$%&'*+.^_`|~\w-]+|"(?:[\t\x20!\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*$/;

/**
 * Parses HTTP/1.x responses as they arrive, strictly by RFC 9112. Ambiguous input is a fault, and so is a head, line or trailer section
 * over 16 KiB. Bodies are passed on in the buffers in which they arrived; the parser keeps no reference to them.
 */
export class ResponseParser {
  readonly #parts: ResponseParts;
  #state: State = 'done';
  /** The last final response of the connection. */
  #before: ResponseHead | undefined = undefined;
  /** The request was a HEAD: its response has no body, whatever it announces. */
  #isHead = false;
  /** Bytes of a line or a head whose end has not arrived. */
  #kept: Buffer = NOTHING;
  /** Bytes of the body or of the chunk that are to come. */
  #left = 0;
  /** Bytes of the trailers read so far. */
  #trailerBytes = 0;

  constructor(parts: ResponseParts) {
    this.#parts = parts;
  }

  /** The response to a request with this method is expected from here on. */
  expect(method: string): void {
    this.#isHead = method === 'HEAD';
    this.#state = 'head';
    this.#kept = NOTHING;
  }

  /** Stops calling the handler. */
  stop(): void {
    this.#state = 'done';
  }

  /** Takes the next bytes. Returns what is wrong with them; undefined when nothing is. */
  push(input: Buffer): BackendError | undefined {
    let at = 0;
    while (at < input.length && this.#state !== 'done') {
      const next = this.#take(input, at);
      if (typeof next !== 'number') return next;
      at = next;
    }
    return undefined;
  }

  /** To be called when the connection has ended in order. Returns whether that completes the response: its body may end with it. */
  end(): boolean {
    if (this.#state !== 'open') return false;
    this.#finish(NOTHING);
    return true;
  }

  /** Consumes the input that belongs to the current state; returns where the rest begins. */
  #take(input: Buffer, at: number): number | BackendError {
    switch (this.#state) {
      case 'head':
        return this.#head(input, at);
      case 'fixed':
      case 'chunk':
        return this.#body(input, at);
      case 'open':
        this.#parts.onBody(at === 0 ? input : input.subarray(at));
        return input.length;
      case 'size':
        return this.#line(input, at, (line) => this.#size(line));
      case 'chunk-end':
        return this.#line(input, at, (line) => this.#chunkEnd(line));
      case 'trailers':
        return this.#line(input, at, (line, end) => this.#trailer(line, input.subarray(end)));
      case 'done':
        return input.length;
    }
  }

  #head(input: Buffer, at: number): number | BackendError {
    const kept = this.#kept.length;
    // Only an input that ends within a head is kept, so the next one continues it from its first byte: then `at` is 0.
    const bytes = kept === 0 ? input : Buffer.concat([this.#kept, input]);
    // The end of the head may span both buffers.
    const end = bytes.indexOf(END_OF_HEAD, Math.max(at, kept - END_OF_HEAD.length));
    if ((end === -1 ? bytes.length : end) - at > RESPONSE_HEAD_LIMIT_BYTES)
      return fault('a head over 16 KiB');
    if (end === -1) {
      if (!mayBecomeHead(bytes, at)) return fault('no HTTP/1');
      this.#kept = Buffer.from(bytes.subarray(at));
      return input.length;
    }
    this.#kept = NOTHING;
    const head = readResponseHead(bytes.toString('latin1', at, end + 2), this.#before);
    if (head === undefined) return fault('a malformed head');
    const behind = end + END_OF_HEAD.length;
    const next = input.length - (bytes.length - behind);
    this.#begin(head, input, next);
    return next;
  }

  #begin(head: ResponseHead, input: Buffer, next: number): void {
    const { status, length, isChunked } = head;
    if (status < 200 && status !== 101) {
      this.#parts.onInterim(head);
      return;
    }
    this.#before = head;
    const hasBody = !this.#isHead && status !== 101 && status !== 204 && status !== 304;
    if (!hasBody) this.#state = 'fixed';
    else if (isChunked) this.#state = 'size';
    else this.#state = length === undefined ? 'open' : 'fixed';
    this.#left = hasBody ? (length ?? 0) : 0;
    this.#parts.onHead(head);
    if (this.#state === 'fixed' && this.#left === 0) this.#finish(input.subarray(next));
  }

  #body(input: Buffer, at: number): number {
    const end = Math.min(input.length, at + this.#left);
    this.#left -= end - at;
    const isLast = this.#left === 0;
    if (end > at) this.#parts.onBody(at === 0 && end === input.length ? input : input.subarray(at, end));
    if (!isLast) return end;
    if (this.#state === 'chunk') this.#state = 'chunk-end';
    else if (this.#state === 'fixed') this.#finish(end === input.length ? NOTHING : input.subarray(end));
    return end;
  }

  /** Passes a whole line, without its end, to `read`, with the position at which the next one begins. */
  #line(
    input: Buffer,
    at: number,
    read: (line: string, end: number) => BackendError | undefined,
  ): number | BackendError {
    const feed = input.indexOf(LF, at);
    const end = feed === -1 ? input.length : feed + 1;
    if (this.#kept.length + end - at > RESPONSE_HEAD_LIMIT_BYTES) return fault('a line over 16 KiB');
    const part = input.subarray(at, end);
    const bytes = this.#kept.length === 0 ? part : Buffer.concat([this.#kept, part]);
    if (feed === -1) {
      this.#kept = Buffer.from(bytes);
      return end;
    }
    this.#kept = NOTHING;
    if (bytes.length < 2 || bytes[bytes.length - 2] !== CR) return fault('a line that ends without CR');
    return read(bytes.toString('latin1', 0, bytes.length - 2), end) ?? end;
  }

  #size(line: string): BackendError | undefined {
    const size = SIZE_LINE.exec(line)?.[1];
    if (size === undefined) return fault('a malformed chunk size');
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
    this.#trailerBytes = 0;
    return undefined;
  }

  #chunkEnd(line: string): BackendError | undefined {
    if (line !== '') return fault('a chunk that is longer than its size');
    this.#state = 'size';
    return undefined;
  }

  #trailer(line: string, rest: Buffer): BackendError | undefined {
    if (line === '') {
      this.#finish(rest);
      return undefined;
    }
    this.#trailerBytes += line.length + 2;
    if (this.#trailerBytes > RESPONSE_HEAD_LIMIT_BYTES) return fault('trailers over 16 KiB');
    if (!isHeaderLine(line)) return fault('a malformed trailer');
    this.#parts.onTrailer?.(line);
    return undefined;
  }

  #finish(rest: Buffer): void {
    this.#state = 'done';
    this.#parts.onEnd(rest);
  }
}

const CR = 0x0d;
const LF = 0x0a;
const VERSION = 'HTTP/1.';
const LONE_LF = /(?<!\r)\n/;

/** Whether more bytes can complete the head. Input that will never be a head is not waited for. */
function mayBecomeHead(bytes: Buffer, start: number): boolean {
  const text = bytes.toString('latin1', start);
  return VERSION.startsWith(text.slice(0, VERSION.length)) && !LONE_LF.test(text);
}

function fault(what: string): BackendError {
  return new BackendError('malformed_response', `The backend sent ${what}.`);
}
