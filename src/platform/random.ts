import { randomBytes } from 'node:crypto';

/** The source of unpredictable bytes. Injected, so that tests are repeatable. */
export interface Random {
  /** `count` unpredictable bytes. */
  bytes(count: number): Buffer;
}

/** The operating system's cryptographic generator. */
export const systemRandom: Random = Object.freeze({ bytes: (count: number) => randomBytes(count) });
