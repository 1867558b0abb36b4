import { NotCounted } from '../../../limiter/not-counted.ts';
import type { Clock } from '../../../platform/clock.ts';
import { DeadlineQueue, type Due, PauseDetector } from '../../../platform/deadline-queue.ts';
import { isRedirection, safeRedisError, unexpectedReply } from '../redis-failure.ts';
import { type DecisionCallback, type DecisionReply, serverTimeOf, TOO_LATE } from './decision-messages.ts';
import type { DecisionRoute, DecisionRoutes } from './server-routing.ts';

/** Upper bounds of the buckets in milliseconds; a last bucket counts longer calls. */
export const CALL_DURATION_BOUNDS_MS: readonly number[] = [0.5, 1, 2, 5, 10, 25, 50, 100, 200, 500];

/** How long calls took, in plain counters that are cheap to increment. A scrape of the metrics reads them. */
export class CallDurations {
  readonly #buckets = new Array<number>(CALL_DURATION_BOUNDS_MS.length + 1).fill(0);
  #count = 0;
  #sumMs = 0;

  /** Calls so far. */
  get count(): number {
    return this.#count;
  }

  /** Milliseconds of all calls together. */
  get sumMs(): number {
    return this.#sumMs;
  }

  /** Calls per bucket, not cumulated: one more entry than `CALL_DURATION_BOUNDS_MS` has. */
  get buckets(): readonly number[] {
    return this.#buckets;
  }

  add(tookMs: number): void {
    this.#count += 1;
    this.#sumMs += tookMs;
    let index = 0;
    while (index < CALL_DURATION_BOUNDS_MS.length && tookMs > (CALL_DURATION_BOUNDS_MS[index] ?? 0))
      index += 1;
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
  }
}

/** A requested decision. */
export interface DecisionRequest {
  readonly keyId: string;
  readonly keyNames: readonly string[];
  /** The decision's ARGV without its first word, the deadline. */
  readonly words: string;
  /** Number of windows in the reply. */
  readonly windows: number;
}

/** Called exactly once, with either the failure (`NotCounted` if that is certain) or the script's reply, and with the time it took. */
export type CallEnded = (error: Error | null, reply: DecisionReply | undefined, tookMs: number) => void;

interface Call extends Due<Call> {
  readonly request: DecisionRequest;
  readonly ended: CallEnded;
  sentAt: number;
  wasRedirected: boolean;
  wasTooLate: boolean;
  /** The last `dueAtMs` that was sent to the server. */
  sentDueAtMs: number;
  isOver: boolean;
}

/**
 * Calls of the script `decideRequests`. Each ends within the timeout, and the server does not carry it out after that, because the call
 * contains its deadline by the server's clock. A call is sent again only if the server replied that it did nothing. Pauses of this
 * process do not count towards the timeout: a call sent late, or a reply not read yet, is no failure of Redis.
 */
export class DecisionCalls {
  readonly #routes: DecisionRoutes;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  /** Calls without a reply, by their deadline. */
  readonly #open: DeadlineQueue<Call>;
  readonly #pauses: PauseDetector;

  constructor(
    routes: DecisionRoutes,
    { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
  ) {
    this.#routes = routes;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#pauses = new PauseDetector(
      clock,
      () => !this.#open.isEmpty,
      // A call that was made during the pause is due no later than one that is made now.
      (pausedMs) => this.#open.postpone(pausedMs, clock.monotonicMs() + timeoutMs),
    );
    this.#open = new DeadlineQueue(
      clock,
      (call) => this.#giveUp(call),
      () => this.#pauses.look(),
    );
  }

  /** Calls the script. */
  call(request: DecisionRequest, ended: CallEnded): void {
    const route = this.#routes.routeOf(request.keyId);
    if (route === undefined) {
      ended(new NotCounted('there is no connection to the Redis server of this key'), undefined, 0);
      return;
    }
    const sentAt = this.#clock.monotonicMs();
    const call: Call = {
      request,
      dueAtMs: sentAt + this.#timeoutMs,
      ended,
      sentAt,
      wasRedirected: false,
      wasTooLate: false,
      sentDueAtMs: 0,
      isOver: false,
      before: undefined,
      after: undefined,
    };
    this.#pauses.watch(sentAt);
    this.#open.add(call, sentAt);
    this.#send(call, route);
  }

  #sendAgain(call: Call, route: DecisionRoute): void {
    call.sentAt = this.#clock.monotonicMs();
    this.#send(call, route);
  }

  #send(call: Call, route: DecisionRoute): void {
    call.sentDueAtMs = call.dueAtMs;
    const deadlineMs = Math.floor(route.serverTimeAt(call.dueAtMs));
    const { keyNames, words, windows } = call.request;
    const onReply: DecisionCallback = (error, reply) => {
      if (error) this.#failed(call, error);
      else if (reply !== undefined) this.#replied(call, route, reply);
      else this.#end(call, unexpectedReply());
    };
    route.send({ keyNames, words: `${deadlineMs} ${words}`, windows }, onReply);
  }

  #replied(call: Call, route: DecisionRoute, reply: DecisionReply): void {
    const receivedAt = this.#clock.monotonicMs();
    route.learn(serverTimeOf(reply), call.sentAt, receivedAt);
    if (reply.numbers[reply.at] !== TOO_LATE) {
      this.#end(call, null, receivedAt, reply);
      return;
    }
    // The call was slow, or the server's clock was set forward (`learn` now knows by how much), or this process sent it late.
    this.#pauses.look();
    const mayTryAgain = !call.wasTooLate || call.sentDueAtMs !== call.dueAtMs;
    const again =
      mayTryAgain && !call.isOver && receivedAt < call.dueAtMs
        ? this.#routes.routeOf(call.request.keyId)
        : undefined;
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
      if (!call.wasRedirected && isRedirection(error)) {
        call.wasRedirected = true;
        this.#sendAgain(call, redirected);
        return;
      }
      if (isSentAround(error)) {
        // The servers do not agree yet on where a slot is, and none has done anything: the call is retried until its deadline.
        setTimeout(() => {
          if (!call.isOver) this.#sendAgain(call, redirected);
        }, DISAGREEMENT_MS);
        return;
      }
    }
    this.#end(call, causeOf(safeRedisError(error)));
  }

  #end(call: Call, error: Error | null, nowMs = this.#clock.monotonicMs(), reply?: DecisionReply): void {
    if (call.isOver) return;
    this.#open.delete(call);
    this.#finish(call, error, nowMs, reply);
  }

  #giveUp(call: Call): void {
    const error = new Error(`Redis did not respond within ${this.#timeoutMs} ms`);
    this.#finish(call, error, this.#clock.monotonicMs(), undefined);
    this.#routes.suspect();
  }

  #finish(call: Call, error: Error | null, nowMs: number, reply: DecisionReply | undefined): void {
    call.isOver = true;
    call.ended(error, reply, nowMs - (call.dueAtMs - this.#timeoutMs));
  }
}

/** How long to wait for servers to agree. Milliseconds. */
const DISAGREEMENT_MS = 20;

/** `NotCounted` if the server rejected the call before it counted anything, or the client found no server for it. */
function causeOf(error: Error): Error {
  return error.name === 'ReplyError' || isSentAround(error) ? new NotCounted(error.message) : error;
}

/** Whether the client gave up because each server redirected it to another one. */
function isSentAround(error: Error): boolean {
  return error.message.startsWith('Too many Cluster redirections');
}
