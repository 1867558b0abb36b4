/**
 * A failure of which it is certain that the store counted nothing, now or later: it was not asked, or it rejected. As the cause of an
 * `unavailable` or of a failed restore; any other leaves that open.
 */
export class NotCounted extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}
