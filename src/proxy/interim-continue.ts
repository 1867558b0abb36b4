/** `HTTP/1.1 100` */
const STATUS_LINE_BYTES = 12;
const STATUS_AT = 9;
const ZERO = 0x30;
const ONE = 0x31;
const TWO = 0x32;
const VERSION_START = 'HTTP/1.';
const END_OF_HEAD = '\r\n\r\n';

/** How far the bytes seen go. */
export interface HeadProgress {
  /** Where the final answer begins (a 101 is final too), or, where it is not there yet, what is not a whole interim head. */
  readonly at: number;
  readonly isFinal: boolean;
}

/**
 * Changes each status 100 at the start of an answer to 102, in place. A backend may send 100 (Continue) unasked (RFC 9110 section
 * 15.2.1), which undici takes for an error, while it hands on any other interim answer, to be dropped.
 */
export function renameContinue(bytes: Buffer): HeadProgress {
  let at = 0;
  while (bytes.length - at >= STATUS_LINE_BYTES) {
    const isSwitch = bytes[at + STATUS_AT + 1] === ZERO && bytes[at + STATUS_AT + 2] === ONE;
    if (
      isSwitch ||
      bytes[at + STATUS_AT] !== ONE ||
      bytes.toString('latin1', at, at + VERSION_START.length) !== VERSION_START
    ) {
      return { at, isFinal: true };
    }
    if (bytes[at + STATUS_AT + 1] === ZERO && bytes[at + STATUS_AT + 2] === ZERO) {
      bytes[at + STATUS_AT + 2] = TWO;
    }
    const end = bytes.indexOf(END_OF_HEAD, at, 'latin1');
    if (end === -1) break;
    at = end + END_OF_HEAD.length;
  }
  return { at, isFinal: false };
}
