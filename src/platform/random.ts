import { randomBytes } from 'node:crypto';

/** Where unpredictable bytes come from. Injected, so that tests can repeat a run. */
export interface Random {
  /** `count` unpredictable bytes. */
  bytes(count: number): Buffer;
}

/** The operating system's cryptographic generator. */
export const systemRandom: Random = Object.freeze({ bytes: (count: number) => randomBytes(count) });
