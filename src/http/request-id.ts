import type { IncomingMessage } from 'node:http';
import type { Random } from '../platform/random.ts';

/** What may be in a client's `X-Request-Id`: it is repeated in a response, to the backend and in the log. */
const ACCEPTED = /^[A-Za-z0-9._~+/=-]{1,128}$/;
/** 96 bits: a multiple of three bytes, so that ids that are encoded together can be cut apart. */
const ID_BYTES = 12;
/** In base64url. */
const ID_LENGTH = 16;
/** Ids that are drawn and encoded at once: a system call for each id would cost more than everything else here. */
const IDS_PER_DRAW = 256;

/** Gives each request an id, by which its response, the backend's log and the gateway's can be matched. */
export class RequestIds {
  readonly #random: Random;
  readonly #holdsSecret: (text: string) => boolean;
  /** Ids, one after the other. */
  #drawn = '';
  #used = 0;

  /** `holdsSecret` says whether a text contains a credential: a client that sends one as its request id gets another id. */
  constructor(random: Random, holdsSecret: (text: string) => boolean) {
    this.#random = random;
    this.#holdsSecret = holdsSecret;
  }

  /** The client's `X-Request-Id` when it sent exactly one valid id, else a new random one. */
  idOf(req: IncomingMessage): string {
    const given = req.headers['x-request-id'];
    if (given === undefined) return this.make();
    // Node joins repeated fields with a comma, which is not accepted.
    const isFit = typeof given === 'string' && ACCEPTED.test(given) && !this.#holdsSecret(given);
    return isFit ? given : this.make();
  }

  /** A new random id, also for input that could not be parsed as a request. */
  make(): string {
    if (this.#used === this.#drawn.length) {
      this.#drawn = this.#random.bytes(IDS_PER_DRAW * ID_BYTES).toString('base64url');
      this.#used = 0;
    }
    const from = this.#used;
    this.#used = from + ID_LENGTH;
    return this.#drawn.slice(from, this.#used);
  }
}
