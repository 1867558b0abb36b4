import type { TollgateError } from '../errors.ts';
import { HeadLinesResponse } from './node-internals.ts';

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
