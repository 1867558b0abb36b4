import { createHash, timingSafeEqual } from 'node:crypto';
import { TollgateError } from '../errors.ts';
import { readBearer } from './bearer.ts';

/** The tokens that open the management interface. All are valid, so that one can be rotated while the other still works. */
export class RootTokens {
  readonly #digests: readonly Buffer[];

  /** `tokens` must be token68, or no `Authorization` value can carry them. */
  constructor(tokens: readonly string[]) {
    this.#digests = tokens.map(digest);
  }

  /**
   * Throws unless `authorizations` is exactly one line with one of the tokens: `bad_request` for several lines (which of them counts
   * would depend on who reads them), `missing_root_token`, or `invalid_root_token`.
   */
  authenticate(authorizations: readonly string[]): void {
    if (authorizations.length > 1) {
      throw new TollgateError('bad_request', 'The request has more than one Authorization header.');
    }
    const credential = readBearer(authorizations[0]);
    if (credential.kind === 'missing') {
      throw new TollgateError(
        'missing_root_token',
        'This endpoint needs the root token: send the header "Authorization: Bearer <ROOT_TOKEN>".',
      );
    }
    if (credential.kind === 'malformed' || !this.#includes(credential.token)) {
      throw new TollgateError('invalid_root_token', 'The root token is not valid.');
    }
  }

  /** Constant time: neither which token matches nor the common prefix of a wrong one changes the duration. */
  #includes(token: string): boolean {
    const presented = digest(token);
    let matches = 0;
    for (const known of this.#digests) matches += Number(timingSafeEqual(presented, known));
    return matches > 0;
  }
}

/** Equal lengths for the comparison, and no plain token kept in memory. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
