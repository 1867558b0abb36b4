/**
 * The cause of an `unavailable` of which it is certain that the store did not count the request, now or later: it was not asked, or it
 * rejected. Any other cause leaves that open.
 */
export class NotCounted extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}
