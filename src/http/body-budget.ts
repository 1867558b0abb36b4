import type { IncomingMessage, ServerResponse } from 'node:http';
import { TollgateError } from '../errors.ts';

/** The room for the bodies that a process reads itself. */
export interface BodyBudgetLimits {
  /** The part of a body that takes no room: every request may have it. Bytes. */
  readonly freeBytes: number;
  /** What all bodies beyond that may take together. Bytes. */
  readonly totalBytes: number;
  /** The time in which a body that takes room must be complete. Milliseconds. */
  readonly deadlineMs: number;
}

const DEFAULT_LIMITS: BodyBudgetLimits = {
  freeBytes: 16 * 1024,
  totalBytes: 32 * 1024 * 1024,
  deadlineMs: 120_000,
};

/**
 * Bounds the memory of large bodies of all requests together. A body takes room as it arrives, so that a client which announces much and
 * sends little takes little, and gives it back when the response is written.
 */
export class BodyBudget {
  readonly #limits: BodyBudgetLimits;
  #takenBytes = 0;

  constructor(limits: BodyBudgetLimits = DEFAULT_LIMITS) {
    this.#limits = limits;
  }

  /**
   * Reads a body of at most `limitBytes`. Rejects with `body_too_large`, `overloaded`, `request_timeout` or, if it ends early,
   * `bad_request`.
   */
  read(req: IncomingMessage, res: ServerResponse, limitBytes: number): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const room = this.#roomFor(res);
    const chunks: Buffer[] = [];
    let size = 0;
    let deadline: NodeJS.Timeout | undefined;
    const end = (error?: TollgateError) => {
      clearTimeout(deadline);
      req.off('data', take).off('end', finish).off('error', leave).off('close', leave);
      if (error === undefined) return resolve(Buffer.concat(chunks, size));
      chunks.length = 0;
      room.giveBack();
      reject(error);
    };
    const take = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limitBytes) return end(bodyTooLarge(limitBytes));
      if (!room.growTo(size)) return end(noRoom());
      chunks.push(chunk);
      if (size > this.#limits.freeBytes)
        deadline ??= setTimeout(() => end(tooSlow()), this.#limits.deadlineMs);
    };
    const finish = () => end();
    const leave = () => end(new TollgateError('bad_request', 'The request body ended early.'));
    if (req.destroyed) leave();
    else req.on('data', take).on('end', finish).on('error', leave).on('close', leave);
    return promise;
  }

  /** The room that one request takes; it is given back with its response at the latest. */
  #roomFor(res: ServerResponse): { growTo(size: number): boolean; giveBack(): void } {
    const { freeBytes, totalBytes } = this.#limits;
    let taken = 0;
    const giveBack = () => {
      this.#takenBytes -= taken;
      taken = 0;
    };
    return {
      growTo: (size) => {
        const more = size - freeBytes - taken;
        if (more <= 0) return true;
        if (this.#takenBytes + more > totalBytes) return false;
        // Before the client has taken the response: nothing of the body is needed for that, and it may take its time.
        if (taken === 0) res.once('prefinish', giveBack).once('close', giveBack);
        taken += more;
        this.#takenBytes += more;
        return true;
      },
      giveBack,
    };
  }
}

/** The error of a body above the limit. */
export function bodyTooLarge(limitBytes: number): TollgateError {
  return new TollgateError('body_too_large', `The request body is larger than ${limitBytes} bytes.`);
}

function noRoom(): TollgateError {
  return new TollgateError(
    'overloaded',
    'The gateway is busy with other large request bodies. Try again shortly, or send less at once.',
  );
}

function tooSlow(): TollgateError {
  return new TollgateError('request_timeout', 'The request body did not arrive in time.');
}
