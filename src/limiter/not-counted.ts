/**
 * A failure after which the store certainly counts nothing, now or later: it was not called, or it rejected the call. It is the cause of an
 * `unavailable` decision, or the error of a failed restore. After any other failure the store may have counted.
 */
export class NotCounted extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** What the store holds for one key can't be read. It works, and decides about other keys. */
export class UnreadableCounts extends NotCounted {}
