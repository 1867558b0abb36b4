import type { TollgateError } from '../errors.ts';
import { HeadLinesResponse } from './node-internals.ts';

/** A header as a head has it. */
export function headerLine(name: string, value: string): string {
  return `${name}: ${value}\r\n`;
}

/** Names by which Node decides how a response is framed: such a header has to be given to Node by name. */
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
 * A response whose head may be given as lines, which Node would take apart, check and put together again. They go out as they are, right
 * after the status line, so they must be known to be sound.
 */
export class RawHeadResponse extends HeadLinesResponse {
  /** What responds to the request: it words its rejection. */
  owner: { reject(error: TollgateError): void } | undefined = undefined;

  /**
   * Writes the head. `lines` are made of `headerLine`s, none with a decisive name; `decisive` is a flat list of names and values. An
   * undefined reason is the usual one of the status. Where `lines` has a `Date`, `sendDate` must be false.
   */
  writeLines(status: number, reason: string | undefined, lines: string, decisive: string[]): void {
    this.headLines = lines;
    if (reason === undefined) this.writeHead(status, decisive);
    else this.writeHead(status, reason, decisive);
  }

  /** Sends the head before there is a body: byte for byte, where Node's own method takes it for UTF-8. */
  override flushHeaders(): void {
    this.write('', 'latin1');
  }
}
