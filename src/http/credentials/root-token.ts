import { hash, timingSafeEqual } from 'node:crypto';

/** Fewest characters of a root token. */
export const MIN_ROOT_TOKEN_LENGTH = 32;

/** The tokens that open the management interface. All are valid, so that one can be rotated while the other still works. */
export class RootTokens {
  readonly #digests: readonly Buffer[];

  /** `tokens` must be token68, or no `Authorization` value can carry them. */
  constructor(tokens: readonly string[]) {
    this.#digests = tokens.map(digest);
  }

  /** Constant time: neither which token matches nor the common prefix of a wrong one changes the duration. */
  includes(token: string): boolean {
    const presented = digest(token);
    let matches = 0;
    for (const known of this.#digests) matches += Number(timingSafeEqual(presented, known));
    return matches > 0;
  }
}

/** Equal lengths for the comparison, and no plain token kept in memory. */
function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
