import { NotCounted } from '../../limiter/not-counted.ts';
import type { Clock } from '../../platform/clock.ts';
import { Deadlines, type Due } from '../../platform/deadlines.ts';
import { readNumbers } from './decision-reply.ts';
import type { DecisionRoute, DecisionRoutes } from './decision-routes.ts';
import type { LuaScript, ScriptAnswered } from './lua-script.ts';
import { safeRedisError } from './redis-failure.ts';

/** Called exactly once, with either the failure (`NotCounted` where that is certain) or what the script returned, and the time that it took. */
export type CallEnded = (error: Error | null, reply: readonly number[], tookMs: number) => void;

/** First element of the script's answer when the call came too late. */
const TOO_LATE = 4;

interface Call extends Due<Call> {
  readonly keyId: string;
  readonly keys: readonly string[];
  readonly words: string;
  readonly ended: CallEnded;
  sentAt: number;
  wasRedirected: boolean;
  wasTooLate: boolean;
  isOver: boolean;
}

/**
 * Calls of the admit script. Each ends within the timeout, and is not carried out after that: it tells the server until when somebody
 * waits for it, by the server's own clock. None is sent again unless the server has said that it did nothing.
 */
export class DecisionCalls {
  readonly #routes: DecisionRoutes;
  readonly #script: LuaScript;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  /** Calls without an answer, and when they are given up. */
  readonly #open: Deadlines<Call>;

  constructor(
    routes: DecisionRoutes,
    script: LuaScript,
    { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
  ) {
    this.#routes = routes;
    this.#script = script;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#open = new Deadlines(clock, (call) => this.#giveUp(call));
  }

  /** Calls the script with its KEYS and the words of its ARGV but the last, which is the deadline. */
  call(keyId: string, keys: readonly string[], words: string, ended: CallEnded): void {
    const route = this.#routes.routeOf(keyId);
    if (route === undefined) {
      ended(new NotCounted('there is no connection to the Redis server of this key'), [], 0);
      return;
    }
    const sentAt = this.#clock.monotonicMs();
    const call: Call = {
      keyId,
      keys,
      words,
      dueAtMs: sentAt + this.#timeoutMs,
      ended,
      sentAt,
      wasRedirected: false,
      wasTooLate: false,
      isOver: false,
      before: undefined,
      after: undefined,
    };
    this.#open.add(call, sentAt);
    this.#send(call, route);
  }

  #sendAgain(call: Call, route: DecisionRoute): void {
    call.sentAt = this.#clock.monotonicMs();
    this.#send(call, route);
  }

  #send(call: Call, route: DecisionRoute): void {
    const deadlineMs = Math.floor(route.serverTimeAt(call.dueAtMs));
    const sent = [...call.keys, `${call.words} ${deadlineMs}`];
    const answered: ScriptAnswered = (error, reply) => {
      const numbers = error ? undefined : readNumbers(reply);
      if (error) this.#failed(call, error);
      else if (numbers?.length === 4) this.#answered(call, route, numbers);
      else
        this.#end(
          call,
          new Error('Redis answered a script call with something else than the script returns'),
        );
    };
    if (route.sharedCalls !== undefined) {
      route.sharedCalls.add(this.#script, sent, answered);
    } else {
      route.hold();
      this.#script.call(route.target, sent, answered);
    }
  }

  #answered(call: Call, route: DecisionRoute, reply: readonly number[]): void {
    const receivedAt = this.#clock.monotonicMs();
    route.learn(reply[3] ?? 0, call.sentAt, receivedAt);
    if (reply[0] !== TOO_LATE) {
      this.#end(call, null, receivedAt, reply);
      return;
    }
    // Either it did take that long, or the server's clock was set forward: this answer has told by how much.
    const again =
      call.wasTooLate || call.isOver || receivedAt >= call.dueAtMs
        ? undefined
        : this.#routes.routeOf(call.keyId);
    if (again === undefined) {
      this.#end(call, new NotCounted('the call reached Redis too late'));
      return;
    }
    call.wasTooLate = true;
    this.#sendAgain(call, again);
  }

  #failed(call: Call, error: Error): void {
    const { redirected } = this.#routes;
    if (redirected !== undefined && !call.isOver) {
      if (!call.wasRedirected && REDIRECTION.test(error.message)) {
        call.wasRedirected = true;
        this.#sendAgain(call, redirected);
        return;
      }
      if (isSentAround(error)) {
        // Servers that do not agree yet on where a slot is. They will, and nothing was done: there is time until the call is given up.
        setTimeout(() => {
          if (!call.isOver) this.#sendAgain(call, redirected);
        }, DISAGREEMENT_MS);
        return;
      }
    }
    const safe = safeRedisError(error);
    this.#end(call, isRefusal(error) ? new NotCounted(safe.message) : safe);
  }

  #end(
    call: Call,
    error: Error | null,
    nowMs = this.#clock.monotonicMs(),
    reply: readonly number[] = [],
  ): void {
    if (call.isOver) return;
    this.#open.delete(call);
    this.#tell(call, error, nowMs, reply);
  }

  #giveUp(call: Call): void {
    const error = new Error(`Redis did not answer within ${this.#timeoutMs} ms`);
    this.#tell(call, error, this.#clock.monotonicMs(), []);
    this.#routes.suspect();
  }

  #tell(call: Call, error: Error | null, nowMs: number, reply: readonly number[]): void {
    call.isOver = true;
    call.ended(error, reply, nowMs - (call.dueAtMs - this.#timeoutMs));
  }
}

const REDIRECTION = /^(MOVED|ASK|TRYAGAIN) /;

/** How long to wait for servers to agree. Milliseconds. */
const DISAGREEMENT_MS = 20;

/** The server has said that it did not run the script, or the client that it found no server for it. */
function isRefusal(error: Error): boolean {
  return error.name === 'ReplyError' || isSentAround(error);
}

/** Each server sent the client to another one, until it gave up. */
function isSentAround(error: Error): boolean {
  return error.message.startsWith('Too many Cluster redirections');
}
