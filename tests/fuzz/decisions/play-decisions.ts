import { SeededRandom } from '../../chaos/seeded-random.ts';
import type { Admin } from '../../support/admin.ts';
import { ROOT_TOKEN, type RunningGateway } from '../../support/gateway.ts';
import { generateSegmentation } from '../generate-response.ts';
import type { ReadResponse } from '../response-reader.ts';
import { callHead, DIALECTS, type Dialect, messageOf, proxiedHead } from './call-head.ts';
import { Connection } from './connection.ts';
import { ALLOWED_ORIGIN, generateOriginal, type Original, type Way } from './original.ts';
import { pickFrills, pickSpoil, spoiltMessage } from './spoil.ts';
import type { TwinKeys } from './twin-keys.ts';
import { askedVerdict, differ, type Verdict, verdictIn, verdictInBody, verifiedVerdict } from './verdict.ts';
import { verifyCall } from './verify-body.ts';

/** What is asked: a gateway with `DECISION_SETTINGS`. */
export interface DecisionsStage {
  readonly gateway: Pick<RunningGateway, 'url' | 'authorizeUrl'>;
  readonly admin: Admin;
}

const TOKEN = 'token-of-the-gateway-in-front';
export const DECISION_SETTINGS = {
  AUTHORIZE_PORT: '0',
  AUTHORIZE_TOKEN: TOKEN,
  TRUSTED_PROXIES: '127.0.0.1',
  CORS_ALLOWED_ORIGINS: ALLOWED_ORIGIN,
};

const REQUESTS = 16;
const LARGE_BYTES = 65_536;
const CALL_METHODS = ['GET', 'GET', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'DELETE'];

/** What a sequence came to. */
export interface PlayedDecisions {
  /** Sentences, none when all promises held. */
  readonly findings: readonly string[];
  /** What the proxy, `/authorize` and `/verify` responded with, with the number of each. */
  readonly endings: ReadonlyMap<string, number>;
  /** A store did not respond in time, so that the keys have no longer the same history; nothing is judged then. */
  readonly isDisturbed: boolean;
}

/** Plays the sequence of a seed: each request by the proxy, by a call of another gateway, and by `/verify`, with three keys of the same history. */
export async function playDecisions(
  stage: DecisionsStage,
  keys: TwinKeys,
  seed: number,
): Promise<PlayedDecisions> {
  const sequence = new DecisionsSequence(stage, keys, new SeededRandom(seed));
  try {
    for (let i = 0; i < REQUESTS; i += 1) await sequence.playOne();
  } finally {
    sequence.close();
  }
  const { findings, endings, isDisturbed } = sequence;
  return { findings: isDisturbed ? [] : findings, endings, isDisturbed };
}

class DecisionsSequence {
  readonly findings: string[] = [];
  readonly endings = new Map<string, number>();
  isDisturbed = false;
  readonly #keys: TwinKeys;
  readonly #random: SeededRandom;
  readonly #proxy: Connection;
  readonly #port: Connection;

  constructor({ gateway }: DecisionsStage, keys: TwinKeys, random: SeededRandom) {
    this.#keys = keys;
    this.#random = random;
    this.#proxy = new Connection(portOf(gateway.url));
    this.#port = new Connection(portOf(gateway.authorizeUrl));
  }

  close(): void {
    this.#proxy.close();
    this.#port.close();
  }

  async playOne(): Promise<void> {
    const original = generateOriginal(this.#random);
    const message = messageOf(proxiedHead(original, this.#secret(original, 'proxied')));
    const response = await this.#send(this.#proxy, 'proxied', { message, method: original.method });
    if (response === undefined) {
      this.#find('the proxy does not respond', message);
      return;
    }
    const proxied = verdictIn(response);
    await this.#ask(original, proxied);
    // It is known by its secret, presented in one way, and is no preflight.
    const isDescribed = original.credential !== 'none' && /bearer$/.test(original.presented);
    if (isDescribed && !(original.isPreflight && isOfProxy(proxied))) await this.#verify(original, proxied);
  }

  async #ask(original: Original, proxied: Verdict): Promise<void> {
    const random = this.#random;
    const dialect = random.pick(DIALECTS);
    const secret = this.#secret(original, 'asked');
    const method = dialect === 'envoy' ? original.method : random.pick(CALL_METHODS);
    const head = () => callHead(original, secret, { dialect, callMethod: method, token: TOKEN });
    if (random.between(1, 2) === 1) await this.#askSpoilt(head(), dialect);
    const call = head();
    const names = pickFrills(random, this.#otherCall()).map(({ name, change }) => {
      change(call, dialect);
      return name;
    });
    const message = messageOf(call);
    const response = await this.#send(this.#port, 'asked', { message, method });
    if (response === undefined) {
      this.#find('no response', message);
      return;
    }
    const expected = askedVerdict(original, dialect, proxied);
    const verdict = verdictIn(response);
    if (differ(verdict, expected))
      this.#find(
        `${show(verdict)} in place of ${show(expected)}, with ${names.join(', ') || 'nothing else'}`,
        message,
      );
    this.#judgeAllowed(response, { secret, original, message });
  }

  /** An approval without the key that was presented is none. */
  #judgeAllowed(
    { status, headers }: ReadResponse,
    {
      secret,
      original,
      message,
    }: { readonly secret: string; readonly original: Original; readonly message: string },
  ): void {
    const isUsable = original.credential === 'small' || original.credential === 'restricted';
    if (status !== 200 || original.isPreflight) return;
    if (!isUsable) this.#find('allowed without a valid key', message);
    else if (headers.get('x-api-key') !== secret) this.#find('allowed with another key', message);
  }

  async #askSpoilt(head: ReturnType<typeof callHead>, dialect: Dialect): Promise<void> {
    const spoil = pickSpoil(this.#random, dialect);
    const message = spoiltMessage(spoil, head, dialect);
    const response = await this.#send(this.#port, 'spoilt', { message, method: head.method });
    if (response === undefined) this.#findCut(`no response, with ${spoil.name}`, message);
    else if (response.status < 400 || response.status > 499)
      this.#find(`${response.status} with ${spoil.name}`, message);
  }

  async #verify(original: Original, proxied: Verdict): Promise<void> {
    const secret = this.#secret(original, 'verified');
    for (;;) {
      const { fault, headers, body } = verifyCall(this.#random, original, { secret, token: ROOT_TOKEN });
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const message = `POST /verify HTTP/1.1\r\nHost: a\r\n${lines.join('')}Content-Length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n${body}`;
      const response = await this.#send(this.#port, fault === undefined ? 'verified' : 'spoilt', {
        ...{ message, method: 'POST' },
      });
      if (response === undefined) this.#findCut('no response of /verify', message);
      else if (fault === undefined) this.#judgeVerdict(response, { proxied, message });
      else if (response.status < 400 || response.status > 499)
        this.#find(`${response.status} of /verify with ${fault}`, message);
      if (fault === undefined) return;
    }
  }

  #judgeVerdict(
    response: ReadResponse,
    { proxied, message }: { readonly proxied: Verdict; readonly message: string },
  ): void {
    const [verdict, expected] = [verdictInBody(response), verifiedVerdict(proxied)];
    if (differ(verdict, expected))
      this.#find(`/verify says ${show(verdict)} in place of ${show(expected)}`, message);
  }

  async #send(
    connection: Connection,
    way: Way | 'spoilt',
    { message, method }: { readonly message: string; readonly method: string },
  ): Promise<ReadResponse | undefined> {
    const response = await connection.ask(message, method, generateSegmentation(this.#random));
    const ending = `${way} ${response?.status ?? 'without a response'}`;
    this.endings.set(ending, (this.endings.get(ending) ?? 0) + 1);
    if (response !== undefined && verdictIn(response).code === 'store_unavailable') this.isDisturbed = true;
    if (connection.fault !== undefined) this.#find(connection.fault, message);
    return response;
  }

  /** A call that would be allowed, and counted. */
  #otherCall(): string {
    const { secret } = this.#keys.small.asked;
    return `GET /authorize/envoy/ HTTP/1.1\r\nHost: a\r\nTollgate-Authorize-Token: ${TOKEN}\r\nAuthorization: Bearer ${secret}\r\n\r\n`;
  }

  #secret({ credential }: Original, way: Way): string {
    if (credential === 'unknown') return `${this.#keys.small[way].secret.slice(0, -4)}AAAA`;
    if (credential === 'malformed') return 'no key';
    if (credential === 'long') return 'x'.repeat(600);
    if (credential === 'empty') return '';
    return credential === 'none' ? '' : this.#keys[credential][way].secret;
  }

  /** Nothing is wrong where the response to a message that was too large got lost: the gateway did not read all of it. */
  #findCut(what: string, message: string): void {
    if (message.length < LARGE_BYTES) this.#find(what, message);
  }

  #find(what: string, message: string): void {
    this.findings.push(`${what}: ${JSON.stringify(message.slice(0, 600))}`);
  }
}

function isOfProxy({ status }: Verdict): boolean {
  return status === 204 || status === 401;
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

function show({ status, code, remaining }: Verdict): string {
  return [status, code, remaining === undefined ? undefined : `${remaining} remaining`]
    .filter((part) => part !== undefined)
    .join(', ');
}
