import { BEARER_TOKEN } from '../../client/bearer-token.ts';
import type { components } from '../../client/management-api.ts';
import { timedFetch } from '../../client/timed-fetch.ts';
import { WORDS } from '../words.ts';

const { faults } = WORDS.portal;

type Schemas = components['schemas'];
export type OwnKey = Schemas['OwnKey'];
export type Window = OwnKey['limits'][number];
type UsageSeries = Schemas['UsageSeries'];
export type UsageRow = UsageSeries['rows'][number];
type RotatedKey = Schemas['RotatedConsumerKey'];

/** A request failed. The message is a sentence for the consumer. */
export class SelfServiceFault extends Error {
  /** The code of the gateway's error; `broken` if there was no response that could be read. */
  readonly code: string;
  /** False: the gateway may have performed the request. */
  readonly isRejection: boolean;

  constructor(code: string, response?: Response) {
    const requestId = response?.headers.get('X-Request-Id') ?? null;
    const known = code in faults ? faults[code as keyof typeof faults] : undefined;
    const sentence = known ?? faults.unavailable;
    super(
      known !== undefined || requestId === null
        ? sentence
        : `${sentence} ${WORDS.handover.requestId(requestId)}`,
    );
    this.name = 'SelfServiceFault';
    this.code = code;
    this.isRejection = response !== undefined && response.status < 500;
  }
}

/** A key may ask five times a second; the page waits for its turn this often. */
const MOST_WAITS = 5;
const WAIT_MS = 1000;
/** How long the head of a response, or a further part of its body, may take. */
const TIMEOUT_MS = 30_000;

/** What self-service says to the holder of a key. The secret is in this object alone, and in the headers of its requests. */
export class SelfService {
  readonly #path: string;
  #secret: string;
  /** Resolves when no rotation is under way. */
  #rotation: Promise<unknown> = Promise.resolve();
  /** A rotation that ends the secret at once has failed, and may have been performed. */
  #mayHaveEnded = false;

  constructor(path: string, secret: string) {
    this.#path = path;
    this.#secret = secret;
  }

  /** Rejects with a `SelfServiceFault`, as all methods do. */
  async key(): Promise<OwnKey> {
    return read((await this.#ask('')).json());
  }

  async usage(query: Readonly<Record<string, string>>): Promise<UsageSeries> {
    return read((await this.#ask(`/usage?${new URLSearchParams(query)}`)).json());
  }

  async usageFile(query: Readonly<Record<string, string>>): Promise<Blob> {
    return read((await this.#ask(`/usage?${new URLSearchParams({ ...query, format: 'csv' })}`)).blob());
  }

  /** Gives the key a new secret, which all further requests use. The same `attempt` never makes two of them. */
  async rotate(graceSeconds: number, attempt: string): Promise<RotatedKey> {
    const rotation = this.#rotate(graceSeconds, attempt);
    this.#rotation = rotation.catch((error: unknown) => {
      if (graceSeconds === 0 && error instanceof SelfServiceFault && !error.isRejection)
        this.#mayHaveEnded = true;
    });
    return rotation;
  }

  async #rotate(graceSeconds: number, attempt: string): Promise<RotatedKey> {
    const response = await this.#ask('/rotate', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': attempt },
      body: JSON.stringify({ graceSeconds }),
    });
    const rotated: RotatedKey = await read(response.json());
    if (rotated.secret !== undefined) {
      this.#secret = rotated.secret;
      this.#mayHaveEnded = false;
    }
    return rotated;
  }

  async #ask(path: string, init: RequestInit = {}): Promise<Response> {
    if (!BEARER_TOKEN.test(this.#secret)) throw new SelfServiceFault('invalid_api_key');
    for (let waits = 0; ; waits += 1) {
      const secret = this.#secret;
      const response = await send(this.#path + path, init, secret);
      if (response.ok) return response;
      const body = (await response.json().catch(() => ({}))) as { readonly code?: string };
      if (body.code === 'invalid_api_key') {
        // A rotation ends the secret before its response arrives.
        if (path !== '/rotate') await this.#rotation;
        if (secret !== this.#secret) continue;
        if (this.#mayHaveEnded) throw new SelfServiceFault('secret_lost', response);
      }
      const isTurn = response.status === 429 && response.headers.get('Retry-After') === '1';
      if (!isTurn || waits >= MOST_WAITS) throw new SelfServiceFault(body.code ?? 'unavailable', response);
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
  }
}

/** The body of a response, unless it is cut off or not JSON. */
async function read<Body>(body: Promise<unknown>): Promise<Body> {
  try {
    return (await body) as Body;
  } catch {
    throw new SelfServiceFault('broken');
  }
}

async function send(url: string, init: RequestInit, secret: string): Promise<Response> {
  const headers = { ...init.headers, Authorization: `Bearer ${secret}` };
  const request = new Request(url, {
    ...{ ...init, headers, cache: 'no-store', credentials: 'omit', redirect: 'error' },
  });
  const response = await timedFetch(request, TIMEOUT_MS).catch(() => undefined);
  if (response === undefined) throw new SelfServiceFault('broken');
  return response;
}
