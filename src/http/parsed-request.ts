// The room `http`: what server, management and proxy share about HTTP, such as credentials, errors, bodies and private parts of Node.
// In: requests and responses of Node.
// Out: the same, read or written in one way everywhere.

/** The target of a request, taken apart without changing a byte of it. */
export interface RequestTarget {
  /** Origin form: path and query exactly as the client wrote them. `*` for the server's own options. */
  readonly target: string;
  /** The target without its query. */
  readonly path: string;
  /** The path percent-decoded once, byte for byte; undefined for a path without `%`, `\`, `//` and `/.`, which has one reading only. */
  readonly decodedPath: string | undefined;
  /** The authority of an absolute-form target, which replaces the Host header (RFC 9112 section 3.2.2). */
  readonly authority: string | undefined;
}

/** A request head that can be read in one way only. */
export interface ParsedRequest extends RequestTarget {
  /** The host that the client named: of an absolute-form target, else of the Host header. Undefined only for HTTP/1.0. */
  readonly host: string | undefined;
  /** The body's framing: no body, its length in bytes, or chunked (and it may still turn out to be empty). */
  readonly body: 'none' | 'chunked' | number;
  /** The client waits for a 100 before it sends its body. */
  readonly expectsContinue: boolean;
}
