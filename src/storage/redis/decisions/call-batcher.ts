import type { RedisConnection } from '../connection.ts';
import type { LuaScript } from '../lua-script.ts';
import { type DecisionReply, placesOf, readNumbers } from './decision-reply.ts';

/** Decisions in one call at most: while it runs the server does nothing else, about 10 µs for each. */
const MOST = 64;

/** One decision as the script takes it. */
export interface DecisionCall {
  readonly keys: readonly string[];
  /** The deadline included. */
  readonly words: string;
  /** Windows in the reply when the request was counted. */
  readonly windows: number;
}

/** Called once with either the failure or the reply; undefined when the reply is not one of the script. */
export type DecisionCallback = (error: Error | null, reply?: DecisionReply) => void;

interface Waiting {
  readonly call: DecisionCall;
  readonly onReply: DecisionCallback;
}

/**
 * Makes one call of all that are made in a turn of the event loop: one command to write, one reply to read and one script to start,
 * where each would cost more than the decision itself. For a script that decides its calls one after the other, and of which an
 * error says that it counted nothing: then each is made by itself, so that one can't fail the others.
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
