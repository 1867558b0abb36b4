import {
  closeSync,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { systemCodeOf } from '../../../../platform/system-code.ts';
import { CommandFault } from '../../../command-fault.ts';
import type { Row } from './row.ts';

/**
 * Collects rejected rows, to be corrected and imported again. They contain secrets, so only their owner can read the file. It is written as
 * `<path>.partial`, renamed when the import is done, and started afresh by a run after an interrupted one.
 */
export class RejectedFile {
  readonly #path: string;
  readonly #descriptor: number;
  #header = '';
  #isEmpty = true;

  /** Throws if the file exists already or can't be created. */
  constructor(path: string) {
    this.#path = path;
    if (existsSync(path)) throw new CommandFault('fault', `The file ${path} is there already.`);
    try {
      // The file of an earlier run is removed. wx: a link that another user has put there is not followed.
      rmSync(this.#partial, { force: true });
      this.#descriptor = openSync(this.#partial, 'wx', 0o600);
      fchmodSync(this.#descriptor, 0o600);
    } catch (error) {
      throw new CommandFault('fault', `The file ${path} can not be made (${systemCodeOf(error)}).`, {
        cause: error,
      });
    }
  }

  /** Sets the first row of CSV. */
  beginWith(header: string): void {
    this.#header = `${header}\n`;
  }

  /** Throws if the row can't be written, for example because the disk is full. */
  add({ text }: Row): void {
    try {
      writeFileSync(this.#descriptor, `${this.#isEmpty ? this.#header : ''}${text}\n`);
    } catch (error) {
      throw new CommandFault('fault', `The file ${this.#path} can not be written (${systemCodeOf(error)}).`, {
        cause: error,
      });
    }
    this.#isEmpty = false;
  }

  /** Renames the file to its final path. If no row was rejected, no file is left. Throws if another run has taken its place meanwhile. */
  finish(): void {
    const isThere = this.#isThere();
    closeSync(this.#descriptor);
    if (isThere && this.#isEmpty) unlinkSync(this.#partial);
    else if (isThere) renameSync(this.#partial, this.#path);
    else if (!this.#isEmpty)
      throw new CommandFault(
        'fault',
        `Rejected rows were not imported, and they are not in ${this.#path}: another import has made that file meanwhile.`,
      );
  }

  discard(): void {
    const isThere = this.#isThere();
    closeSync(this.#descriptor);
    if (isThere) unlinkSync(this.#partial);
  }

  /** Whether the path still leads to the file that this run has made: a later run removes it. */
  #isThere(): boolean {
    const { ino } = fstatSync(this.#descriptor);
    return lstatSync(this.#partial, { throwIfNoEntry: false })?.ino === ino;
  }

  get #partial(): string {
    return `${this.#path}.partial`;
  }
}
