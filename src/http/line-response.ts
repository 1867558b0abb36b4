import { ServerResponse } from 'node:http';
import type { TollgateError } from '../errors.ts';

/** Node's own step from a status line and fields to a head. It is not documented: where it is missing, lines would be lost. */
const storeHeader: unknown = Reflect.get(ServerResponse.prototype, '_storeHeader');
if (typeof storeHeader !== 'function') throw new Error('This version of Node writes heads in another way.');

/** A field as a head has it. */
export function fieldLine(name: string, value: string): string {
  return `${name}: ${value}\r\n`;
}

/** Names by which Node decides how an answer is framed and what it adds: such a field it has to be told. */
export function decidesHead(lowerCaseName: string): boolean {
  return DECISIVE.has(lowerCaseName);
}

const DECISIVE: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'trailer',
  'transfer-encoding',
]);

/**
 * A response whose head may be given as lines, which Node would take apart, check and put together again. They go out as they are, right behind
 * the status line, so they must be known to be sound.
 */
export class LineResponse extends ServerResponse {
  /** Node's own: what `Keep-Alive` says, in milliseconds; 0 = nothing. */
  declare _keepAliveTimeout: number;
  /** What answers the request, and is to word its refusal. */
  owner: { refuse(error: TollgateError): void } | undefined = undefined;
  #lines = '';

  /**
   * Writes the head. `lines` are made of `fieldLine`s, none with a decisive name; `decisive` is a flat list of names and values. An
   * undefined reason is the usual one of the status.
   */
  writeLines(status: number, reason: string | undefined, lines: string, decisive: string[]): void {
    this.#lines = lines;
    if (reason === undefined) this.writeHead(status, decisive);
    else this.writeHead(status, reason, decisive);
  }

  /** Sends the head before there is a body: byte for byte, where Node's own method takes it for UTF-8. */
  override flushHeaders(): void {
    this.write('', 'latin1');
  }

  _storeHeader(statusLine: string, fields: unknown): void {
    Reflect.apply(storeHeader as () => void, this, [statusLine + this.#lines, fields]);
  }
}
