import { customerWindowName, OTHER_CUSTOMERS } from '../../../limiter/customer-windows.ts';
import type { LimitSubject } from '../../../limiter/rate-limiter.ts';
import type { Limit } from '../../../limiter/request-limits.ts';
import type { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { customersKeyName, versionKeyName, windowKeyName } from '../redis-key-names.ts';

/** The arguments of the script for a list of limits, built once for each list. */
interface LimitArguments {
  /** The limits, if all are enforced, of the key and without an end; otherwise undefined. */
  readonly plain: string | undefined;
  /** The limit and its period, if the list is one plain limit; otherwise undefined. */
  readonly single: string | undefined;
  readonly each: string;
  readonly hasCustomers: boolean;
}

const argumentsByList = new WeakMap<readonly Limit[], LimitArguments>();

/** The last words of a decision's ARGV: the cost and the limits. */
export function limitArgumentsOf({ limits, cost }: LimitSubject): string {
  if (limits.length === 0) return '-';
  const { plain, single, hasCustomers, each } = argumentsOf(limits);
  if (cost === 1 && single !== undefined) return single;
  if (cost > 0 && plain !== undefined) return `=${cost} ${plain}`;
  return `${hasCustomers ? '**' : '*'} ${cost} ${each}`;
}

/** The script's KEYS for a decision. */
export function decisionKeyNamesOf({ keyId, limits, customerId }: LimitSubject): readonly string[] {
  const first = limits[0];
  if (first === undefined) return [versionKeyName(keyId)];
  // Nearly all plans have one limit, of the key: an array literal takes less memory than an array that grows.
  if (limits.length === 1 && first.per === 'key') {
    return [versionKeyName(keyId), windowKeyName(keyId, first.windowName)];
  }
  const keyNames = [versionKeyName(keyId)];
  for (const limit of limits) {
    if (limit.per === 'key') {
      keyNames.push(windowKeyName(keyId, limit.windowName));
    } else {
      keyNames.push(windowKeyName(keyId, customerWindowName(limit, customerId)));
      keyNames.push(windowKeyName(keyId, customerWindowName(limit, OTHER_CUSTOMERS)));
    }
  }
  if (argumentsOf(limits).hasCustomers) keyNames.push(customersKeyName(keyId));
  return keyNames;
}

function argumentsOf(limits: readonly Limit[]): LimitArguments {
  const known = argumentsByList.get(limits);
  if (known !== undefined) return known;
  const plain = limits.every(isPlain) ? limits.map(({ limit }) => limit).join(' ') : undefined;
  const made = {
    plain,
    single: plain !== undefined && limits.length === 1 ? `${plain} ${limits[0]?.period.token}` : undefined,
    each: JSON.stringify(limits.flatMap((limit) => [kindOf(limit), limitValue(limit), limit.period.token])),
    hasCustomers: limits.some(({ per }) => per === 'customer'),
  };
  argumentsByList.set(limits, made);
  return made;
}

function isPlain({ mode, per, endsAtMs }: Limit): boolean {
  return mode === 'enforce' && per === 'key' && endsAtMs === null;
}

function kindOf({ mode, per }: Limit): number {
  return (mode === 'shadow' ? 1 : 0) + (per === 'customer' ? 2 : 0);
}

function limitValue({ limit, baseLimit, endsAtMs }: Limit): number | readonly number[] {
  return endsAtMs === null ? limit : [limit, endsAtMs, baseLimit];
}

/** The reply to one decision: the numbers of the whole reply, and where those of this decision begin. */
export interface DecisionReply {
  readonly numbers: readonly number[];
  /** Index of the decision's kind. */
  readonly at: number;
}

/** The kinds of decision in a reply of `decideRequests-n.lua`. */
export const STALE = 0;
export const ALLOWED = 1;
export const LIMITED = 2;
export const UNLIMITED = 3;
export const TOO_LATE = 4;
export const UNREADABLE = 5;

/** The server's time in milliseconds since 1970. */
export function serverTimeOf({ numbers }: DecisionReply): number {
  return numbers[0] ?? 0;
}

/** The numbers of a reply of the script; undefined for anything else. */
export function readNumbers(reply: unknown): readonly number[] | undefined {
  return typeof reply === 'string' ? parseNumbers(reply) : undefined;
}

/** The index at which each decision of a reply begins, given the number of windows of each. Undefined if the reply has another form. */
function placesOf(numbers: readonly number[], windows: readonly number[]): readonly number[] | undefined {
  const places: number[] = [];
  let at = 1;
  for (const count of windows) {
    const kind = numbers[at];
    places.push(at);
    at += kind === ALLOWED || kind === LIMITED ? 2 + 2 * count : 1;
  }
  return at === numbers.length ? places : undefined;
}

const ZERO = 0x30;
const NINE = 0x39;
const MINUS = 0x2d;
const BLANK = 0x20;

/** Parses whole numbers separated by blanks, in one pass, because each decision waits for it. */
function parseNumbers(text: string): readonly number[] | undefined {
  const numbers: number[] = [];
  let sign = 1;
  let value = 0;
  let digits = 0;
  for (let i = 0; i <= text.length; i += 1) {
    const code = i === text.length ? BLANK : text.charCodeAt(i);
    if (code >= ZERO && code <= NINE) {
      value = value * 10 + (code - ZERO);
      digits += 1;
    } else if (code === BLANK && digits > 0) {
      numbers.push(sign * value);
      sign = 1;
      value = 0;
      digits = 0;
    } else if (code === MINUS && digits === 0 && sign === 1) {
      sign = -1;
    } else {
      return undefined;
    }
  }
  return numbers;
}

/** Most decisions in one call: the server does nothing else while it runs, about 10 µs for each decision. */
const MOST = 64;

/** One decision, in the form that the script takes. */
export interface DecisionCall {
  readonly keyNames: readonly string[];
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
  readonly #script: LuaScript;
  readonly #redis: RedisConnection;
  #waiting: Waiting[] = [];
  readonly #sendAll = (): void => this.#send();

  constructor(script: LuaScript, redis: RedisConnection) {
    this.#script = script;
    this.#redis = redis;
  }

  /** Calls the script at the end of this turn. */
  add(call: DecisionCall, onReply: DecisionCallback): void {
    this.#waiting.push({ call, onReply });
    if (this.#waiting.length === 1) setImmediate(this.#sendAll);
    else if (this.#waiting.length === MOST) this.#send();
  }

  #send(): void {
    const sent = this.#waiting;
    if (sent.length === 0) return;
    this.#waiting = [];
    const keyNames: string[] = [];
    for (const { call } of sent) for (const name of call.keyNames) keyNames.push(name);
    const words = sent.map(({ call }) => call.words);
    this.#script.callWithKeys(this.#redis, keyNames, words, (error, reply) => {
      if (sent.length > 1 && error?.name === 'ReplyError') this.#sendEach(sent);
      else distribute(sent, error, reply);
    });
  }

  #sendEach(sent: readonly Waiting[]): void {
    for (const { call, onReply } of sent) callDecision(this.#script, this.#redis, call, onReply);
  }
}

/** Makes one decision in a call by itself. */
export function callDecision(
  script: LuaScript,
  redis: RedisConnection,
  call: DecisionCall,
  onReply: DecisionCallback,
): void {
  script.callWithKeys(redis, call.keyNames, [call.words], (error, reply) =>
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
