import {
  closeSync,
  existsSync,
  fchmodSync,
  openSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { CommandFault } from '../../../command-fault.ts';
import type { Row } from './row.ts';

/**
 * Keeps rejected rows, to be corrected and imported. They have secrets: only their owner can read the file. It has its name when the import is done;
 * until then it is `<path>.partial`, which a run after one that was cut off begins again.
 */
export class RejectedFile {
  readonly #path: string;
  readonly #descriptor: number;
  #header = '';
  #isEmpty = true;

  /** Throws where the file is there already, or can't be made. */
  constructor(path: string) {
    this.#path = path;
    if (existsSync(path)) throw new CommandFault('fault', `The file ${path} is there already.`);
    try {
      // wx: what an earlier run left is removed, and a link that another user has put there is not followed.
      rmSync(this.#partial, { force: true });
      this.#descriptor = openSync(this.#partial, 'wx', 0o600);
      fchmodSync(this.#descriptor, 0o600);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
      throw new CommandFault('fault', `The file ${path} can not be made (${code}).`, { cause: error });
    }
  }

  /** The first row of CSV. */
  beginWith(header: string): void {
    this.#header = `${header}\n`;
  }

  add({ text }: Row): void {
    writeSync(this.#descriptor, `${this.#isEmpty ? this.#header : ''}${text}\n`);
    this.#isEmpty = false;
  }

  /** Gives the file its name; there is none where no row was rejected. */
  finish(): void {
    closeSync(this.#descriptor);
    if (this.#isEmpty) unlinkSync(this.#partial);
    else renameSync(this.#partial, this.#path);
  }

  discard(): void {
    closeSync(this.#descriptor);
    unlinkSync(this.#partial);
  }

  get #partial(): string {
    return `${this.#path}.partial`;
  }
}
