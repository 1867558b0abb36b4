import type { Socket } from 'node:net';
import { readStrictly } from '../proxy/differential/strict-reading.ts';
import { type LateSegment, type ResponseMessage, responseMessage } from './response-message.ts';
import type { Arrival, ScriptedBackend } from './scripted-backend.ts';
import { beforePoll, turns } from './turns.ts';

/** The backend's side of one connection: reads requests strictly, one after the other, and responds as their plans say. */
export class BackendSide {
  readonly socket: Socket;
  readonly #number: number;
  readonly #backend: ScriptedBackend;
  #text = '';
  #served = 0;
  /** Sends nothing any more. */
  #isMute = false;
  #isTunnel = false;
  /** No request follows the one that has arrived. */
  #hasLast = false;
  /** The request that is arriving or being responded to. */
  #arrival: Arrival | undefined;
  #response: 'none' | 'begun' | 'sent' = 'none';

  constructor(socket: Socket, number: number, backend: ScriptedBackend) {
    this.socket = socket;
    this.#number = number;
    this.#backend = backend;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', () => {});
    // A gateway that ends its side has no use for the rest.
    socket.on('end', () => socket.destroy());
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && !this.socket.writableEnded;
  }

  /** Between two requests, as far as the backend knows. */
  get isIdle(): boolean {
    return this.isOpen && !this.#isMute && this.#arrival === undefined && this.#text === '';
  }

  #receive(chunk: Buffer): void {
    // What comes through a tunnel is no HTTP; what comes behind the last request is not read.
    if (this.#isTunnel || this.#hasLast) return;
    this.#text += chunk.toString('latin1');
    this.#overlookBody();
    const { requests, rest, end } = readStrictly(this.#text);
    this.#text = this.#text.slice(end);
    for (const request of requests) {
      const arrival = this.#arrivalOf(request.target.slice(1));
      if (arrival === undefined || arrival.request !== undefined) return;
      arrival.request = request;
      if (this.#response === 'none') void this.#respond(arrival);
      else this.#finish();
      if (this.#hasLast) return;
    }
    if (rest === 'malformed')
      this.#backend.strays.push(`no request: ${JSON.stringify(this.#text.slice(0, 300))}`);
    if (rest === 'incomplete') this.#receiveHead();
  }

  /** As a server does that expects no body of such a request. */
  #overlookBody(): void {
    const token = this.#arrival === undefined ? HEAD.exec(this.#text)?.[1] : undefined;
    if (token === undefined || this.#backend.planOf(token)?.response.readsBody !== false) return;
    const end = this.#text.indexOf('\r\n\r\n');
    const head = this.#text.slice(0, end).replace(FRAMING, '');
    this.#hasLast = CLOSE.test(head);
    this.#text = head + this.#text.slice(end);
  }

  #receiveHead(): void {
    const token = HEAD.exec(this.#text)?.[1];
    const arrival = token === undefined ? undefined : this.#arrivalOf(token);
    if (arrival === undefined || this.#response !== 'none') return;
    if (this.#backend.planOf(arrival.token)?.response.trigger === 'head') void this.#respond(arrival);
  }

  #arrivalOf(token: string): Arrival | undefined {
    if (this.#arrival?.token === token) return this.#arrival;
    if (this.#arrival !== undefined || this.#backend.planOf(token) === undefined) {
      const before = this.#arrival === undefined ? 'unknown' : `before the end of ${this.#arrival.token}`;
      this.#backend.strays.push(`a request for ${token}, ${before}`);
      return undefined;
    }
    const arrival: Arrival = {
      token,
      connection: this.#number,
      served: this.#served,
      request: undefined,
      bytesSent: 0,
    };
    this.#backend.arrivals.push(arrival);
    this.#arrival = arrival;
    return arrival;
  }

  async #respond(arrival: Arrival): Promise<void> {
    const plan = this.#backend.planOf(arrival.token);
    if (plan === undefined || this.#isMute) return;
    const message = responseMessage(plan);
    this.#response = 'begun';
    this.#isTunnel = plan.isUpgrade && plan.response.status === 101;
    await this.#send(message, arrival);
    this.#response = 'sent';
    this.#served += 1;
    if (arrival.request !== undefined) this.#finish();
    if (message.later !== undefined) void this.#sendLater(message.later);
    if (message.afterwards === 'keep' && !this.#hasLast) return;
    this.#isMute = true;
    if (message.afterwards === 'fin' || message.afterwards === 'keep') this.socket.end();
    if (message.afterwards === 'reset') this.socket.resetAndDestroy();
  }

  /** Both the request and the response are through. */
  #finish(): void {
    if (this.#response !== 'sent') return;
    this.#arrival = undefined;
    this.#response = 'none';
  }

  async #send({ segments }: ResponseMessage, arrival: Arrival): Promise<void> {
    for (const { turns: count, bytes } of segments) {
      await turns(count);
      if (!this.isOpen) return;
      arrival.bytesSent += bytes.length;
      this.socket.write(bytes);
    }
  }

  async #sendLater({ turns: count, bytes, onlyWhileIdle }: LateSegment): Promise<void> {
    await turns(count);
    if (onlyWhileIdle) await beforePoll();
    if (!this.isOpen || (onlyWhileIdle && !(this.isIdle && this.#backend.hasAllOf(this)))) return;
    this.socket.write(bytes);
  }
}

const HEAD = /^[A-Z]+ \/(\w+) HTTP\/1\.1\r\n(?:.+\r\n)*\r\n/;
const FRAMING = /\r\n(?:content-length|transfer-encoding):[^\r]*/gi;
const CLOSE = /\r\nconnection: close(?:\r|$)/i;
