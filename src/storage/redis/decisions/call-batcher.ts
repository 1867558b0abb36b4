import type { RedisConnection } from '../connection.ts';
import type { LuaScript } from '../lua-script.ts';
import { type DecisionReply, placesOf, readNumbers } from './decision-reply.ts';

/** Most decisions in one call: the server does nothing else while it runs, about 10 µs for each decision. */
const MOST = 64;

/** One decision, in the form that the script takes. */
export interface DecisionCall {
  readonly keys: readonly string[];
  /** Its ARGV, the deadline included. */
  readonly words: string;
  /** Number of windows in the reply if the request is allowed or limited. */
  readonly windows: number;
}

/** Called once with either the failure or the reply, or without both if Redis's reply is not one of the script's. */
export type DecisionCallback = (error: Error | null, reply?: DecisionReply) => void;

interface Waiting {
  readonly call: DecisionCall;
  readonly onReply: DecisionCallback;
}

/**
 * Combines all calls of an event-loop turn into one: one command to write, one reply to read and one script to start, each of which
 * costs more than a decision. The script must decide the calls one after the other, and an error of it must mean that it counted
 * nothing: then each call is made separately, so that one can't fail the others.
 */
export class CallBatcher {
  readonly #redis: RedisConnection;
  #script: LuaScript | undefined;
  #waiting: Waiting[] = [];
  readonly #sendAll = (): void => this.#send();

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  /** Calls the script at the end of this turn. */
  add(script: LuaScript, call: DecisionCall, onReply: DecisionCallback): void {
    this.#script = script;
    this.#waiting.push({ call, onReply });
    if (this.#waiting.length === 1) setImmediate(this.#sendAll);
    else if (this.#waiting.length === MOST) this.#send();
  }

  #send(): void {
    const sent = this.#waiting;
    const script = this.#script;
    if (sent.length === 0 || script === undefined) return;
    this.#waiting = [];
    const keys: string[] = [];
    for (const { call } of sent) for (const key of call.keys) keys.push(key);
    const words = sent.map(({ call }) => call.words);
    script.callWithKeys(this.#redis, keys, words, (error, reply) => {
      if (sent.length > 1 && error?.name === 'ReplyError') this.#sendEach(script, sent);
      else distribute(sent, error, reply);
    });
  }

  #sendEach(script: LuaScript, sent: readonly Waiting[]): void {
    for (const { call, onReply } of sent) callDecision(script, this.#redis, call, onReply);
  }
}

/** Makes one decision in a call by itself. */
export function callDecision(
  script: LuaScript,
  redis: RedisConnection,
  call: DecisionCall,
  onReply: DecisionCallback,
): void {
  script.callWithKeys(redis, call.keys, [call.words], (error, reply) =>
    distribute([{ call, onReply }], error, reply),
  );
}

function distribute(sent: readonly Waiting[], error: Error | null | undefined, reply: unknown): void {
  const numbers = error ? undefined : readNumbers(reply);
  const windows = sent.map(({ call }) => call.windows);
  const places = numbers && placesOf(numbers, windows);
  let index = 0;
  for (const { onReply } of sent) {
    const at = places?.[index];
    index += 1;
    if (error) onReply(error);
    else if (numbers === undefined || at === undefined) onReply(null);
    else onReply(null, { numbers, at });
  }
}
