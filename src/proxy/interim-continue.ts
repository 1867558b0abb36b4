/** `HTTP/1.1 100` */
const STATUS_LINE_BYTES = 12;
const STATUS_AT = 9;
const ZERO = 0x30;
const ONE = 0x31;
const TWO = 0x32;
const VERSION_START = 'HTTP/1.';
const END_OF_HEAD = '\r\n\r\n';

/** How far the bytes seen go: to the final answer's head (a 101 is final too), only into interim ones, or not as far as a status. */
export type HeadProgress = 'final_head' | 'interim_only' | 'too_short';

/**
 * Changes each status 100 at the start of an answer to 102, in place. A backend may send 100 (Continue) unasked (RFC 9110 section
 * 15.2.1), which undici takes for an error, while it hands on any other interim answer, to be dropped.
 */
export function renameContinue(bytes: Buffer): HeadProgress {
  let from = 0;
  while (bytes.length - from >= STATUS_LINE_BYTES) {
    const isSwitch = bytes[from + STATUS_AT + 1] === ZERO && bytes[from + STATUS_AT + 2] === ONE;
    if (
      isSwitch ||
      bytes[from + STATUS_AT] !== ONE ||
      bytes.toString('latin1', from, from + VERSION_START.length) !== VERSION_START
    ) {
      return 'final_head';
    }
    if (bytes[from + STATUS_AT + 1] === ZERO && bytes[from + STATUS_AT + 2] === ZERO) {
      bytes[from + STATUS_AT + 2] = TWO;
    }
    const end = bytes.indexOf(END_OF_HEAD, from, 'latin1');
    if (end === -1) return 'interim_only';
    from = end + END_OF_HEAD.length;
  }
  return from === bytes.length ? 'interim_only' : 'too_short';
}
