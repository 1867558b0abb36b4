/** Where a secret may be within a text. Without the checksum: a mistyped secret is nobody's to see either. */
const SECRETS = /[A-Za-z][A-Za-z0-9]{0,15}_[0-9A-Za-z]{36}/g;
const MASK = '***';

/**
 * Finds credentials where a client should not have put them: in a path, in the name that it gave its request. It goes by their form, so
 * that secrets of other gateways and deleted ones are found too.
 */
export class SecretScreen {
  readonly #others: readonly string[];

  /** `others` are credentials without a form of their own, the root tokens. */
  constructor(others: readonly string[]) {
    this.#others = others;
  }

  /** Whether a credential is in the text as it stands. */
  holds(text: string): boolean {
    return text.search(SECRETS) >= 0 || this.#others.some((secret) => text.includes(secret));
  }

  /** A path that may be written down: credentials in it, percent-encoded ones included, give way to asterisks. */
  masked(path: string): string {
    const plain = path.includes('%') ? decoded(path) : path;
    if (!this.holds(plain)) return path;
    return this.#others.reduce(
      (text, secret) => text.replaceAll(secret, MASK),
      plain.replaceAll(SECRETS, MASK),
    );
  }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // Not UTF-8; what a credential may consist of is ASCII.
    return path.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
}
