import { readNumbers } from './decision-reply.ts';
import type { LuaScript, ScriptAnswered, ScriptTarget } from './lua-script.ts';

/** Decisions in one call at most: while it runs the server does nothing else, about 10 µs for each. */
const MOST = 64;
/** Numbers that the script answers for each decision. */
const NUMBERS = 4;

interface Waiting {
  readonly keysAndArguments: string[];
  readonly answered: ScriptAnswered;
}

/**
 * Makes one call of all that are made in a turn of the event loop: one command to write, one reply to read and one script to start,
 * where each would cost more than the decision itself. For a script that answers its calls one after the other, and of which an
 * error says that it counted nothing: then each is made by itself, so that one can't fail the others.
 */
export class SharedCalls {
  readonly #redis: ScriptTarget;
  #script: LuaScript | undefined;
  #waiting: Waiting[] = [];
  readonly #sendAll = (): void => this.#send();

  constructor(redis: ScriptTarget) {
    this.#redis = redis;
  }

  /** Calls the script at the end of this turn. `answered` gets the failure, or the numbers for this call. */
  add(script: LuaScript, keysAndArguments: string[], answered: ScriptAnswered): void {
    this.#script = script;
    this.#waiting.push({ keysAndArguments, answered });
    if (this.#waiting.length === 1) setImmediate(this.#sendAll);
    else if (this.#waiting.length === MOST) this.#send();
  }

  #send(): void {
    const sent = this.#waiting;
    if (sent.length === 0) return;
    this.#waiting = [];
    const calls = sent.map(({ keysAndArguments }) => keysAndArguments);
    this.#script?.callTogether(this.#redis, calls, (error, reply) => {
      if (sent.length > 1 && error?.name === 'ReplyError') this.#sendEach(sent);
      else distribute(sent, error, reply);
    });
  }

  #sendEach(sent: readonly Waiting[]): void {
    for (const { keysAndArguments, answered } of sent) {
      this.#script?.call(this.#redis, keysAndArguments, answered);
    }
  }
}

function distribute(sent: readonly Waiting[], error: Error | null | undefined, reply: unknown): void {
  const all = readNumbers(reply);
  const numbers = all?.length === NUMBERS * sent.length ? all : undefined;
  let from = 0;
  for (const { answered } of sent) {
    if (error) answered(error);
    else answered(null, numbers?.slice(from, from + NUMBERS));
    from += NUMBERS;
  }
}
