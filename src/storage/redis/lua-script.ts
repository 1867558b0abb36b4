import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Cluster, Command } from 'ioredis';
import type { RedisConnection } from './redis-connection.ts';
import { redisUnavailable } from './redis-failure.ts';

/** Called once with either the failure (the client's own error: see `safeRedisError` before keeping it) or the reply. */
export type ScriptCallback = (error: Error | null | undefined, reply?: unknown) => void;

/**
 * A Lua script, called by its digest. If the server does not know it (a new or restarted server, SCRIPT FLUSH), the call is
 * repeated with the text, which the server then keeps. An EVALSHA with an unknown digest has run nothing, so the second call
 * can't count twice. On a server of a cluster that hands a slot over, a script can't create a key of it: one that removed a key and made it
 * again would fail in between.
 */
export class LuaScript {
  readonly #text: string;
  readonly #sha: string;
  /** The name of the command and the digest as RESP bulk strings, without the last CRLF. */
  readonly #head: string;
  readonly #numberOfKeys: number;

  /** Reads the file, whose name ends in the number of KEYS (`addUnits-7.lua`), or in `n` for any. Throws when there is no such file. */
  constructor(file: URL) {
    this.#text = readFileSync(file, 'utf8');
    this.#sha = createHash('sha1').update(this.#text).digest('hex');
    this.#head = `${bulkString('evalsha')}$${this.#sha.length}\r\n${this.#sha}`;
    this.#numberOfKeys = Number(/-(\d+)\.lua$/.exec(file.pathname)?.[1]);
  }

  /**
   * Runs a script that takes any number of KEYS (`decideRequests-n.lua`). Takes a callback instead of returning a promise: decisions are the
   * hot path.
   */
  callWithKeys(
    redis: RedisConnection,
    keys: readonly string[],
    args: readonly string[],
    onReply: ScriptCallback,
  ): void {
    this.#send(redis, keys.length, [...keys, ...args], onReply);
  }

  /** The same as a promise; rejects with `StoreUnavailable`. */
  runWithKeys(redis: RedisConnection, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return promised((onReply) => this.callWithKeys(redis, keys, args, onReply));
  }

  /** Runs a script that takes a fixed number of KEYS, followed by its ARGV. Rejects with `StoreUnavailable`. */
  run(redis: RedisConnection, keysAndArguments: string[]): Promise<unknown> {
    return promised((onReply) => this.#send(redis, this.#numberOfKeys, keysAndArguments, onReply));
  }

  // Not with callbacks that the client takes: they, and everything they refer to, would live until the old generation is collected.
  #send(redis: RedisConnection, keys: number, keysAndArguments: string[], onReply: ScriptCallback): void {
    const succeeded = (reply: unknown) => onReply(null, reply);
    this.#callByDigest(redis, keys, keysAndArguments).then(succeeded, (error: Error) => {
      if (isUnknown(error)) redis.eval(this.#text, keys, ...keysAndArguments).then(succeeded, onReply);
      else onReply(error);
    });
  }

  #callByDigest(redis: RedisConnection, keys: number, keysAndArguments: string[]): Promise<unknown> {
    // The cluster client finds the server by the keys, which it reads from the arguments.
    if (redis instanceof Cluster) return redis.evalsha(this.#sha, keys, ...keysAndArguments);
    const command = new EncodedCall(this.#head, keys, keysAndArguments);
    redis.sendCommand(command as unknown as Command);
    return command.promise;
  }
}

/** The client's `Command`, with methods that are private in its types only. A test fails if the client no longer has them. */
interface OpenCommand extends Pick<Command, Exclude<keyof Command, 'toWritable'>> {
  toWritable(): string;
  initPromise(): void;
  _convertValue(resolve: (value: unknown) => void): (reply: unknown) => void;
  _clearTimers(): void;
}
const OpenCommand = Command as unknown as new (
  ...options: ConstructorParameters<typeof Command>
) => OpenCommand;

/** A call, encoded when it is made. The client would check each argument of each call, and check again to join them. */
class EncodedCall extends OpenCommand {
  readonly #text: string;

  constructor(head: string, keys: number, keysAndArguments: readonly string[]) {
    super('evalsha', [], { replyEncoding: 'utf8' });
    const start = `*${keysAndArguments.length + 3}\r\n${head}`;
    const count = String(keys);
    let text = start + lengthLine(count.length) + count;
    for (const argument of keysAndArguments) text += lengthLine(argument.length) + argument;
    text += '\r\n';
    // Lengths are in bytes. Nearly all calls are plain ASCII, and one check is cheaper than one for each argument.
    const isAscii = Buffer.byteLength(text) === text.length;
    this.#text = isAscii ? text : `${start}\r\n${[count, ...keysAndArguments].map(bulkString).join('')}`;
  }

  override toWritable(): string {
    return this.#text;
  }

  /**
   * Does the same as the client's method, which writes the functions directly as values of properties. V8 allocates such functions in
   * the old generation, where each would keep its command, reply and promise in memory until that generation is collected.
   */
  override initPromise(): void {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.promise = promise;
    this.resolve = this._convertValue(resolve);
    this.reject = rejection(this, reject);
  }
}

function rejection(command: OpenCommand, reject: (error: Error) => void): (error: Error) => void {
  return (error) => {
    command._clearTimers();
    command.isSettled = true;
    reject(error);
  };
}

/** Length lines of arguments shorter than this are built once: nearly all arguments of decisions are shorter. */
const MADE_LINES = 256;
const LENGTH_LINES: readonly string[] = Array.from(
  { length: MADE_LINES },
  (_, length) => `\r\n$${length}\r\n`,
);

/** The CRLF that ends the previous bulk string, and the line with the length of the next one. */
function lengthLine(bytes: number): string {
  return LENGTH_LINES[bytes] ?? `\r\n$${bytes}\r\n`;
}

/** A bulk string of RESP, the protocol of Redis. */
function bulkString(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

function promised(call: (onReply: ScriptCallback) => void): Promise<unknown> {
  return new Promise((resolve, reject) =>
    call((error, reply) => {
      if (error) reject(redisUnavailable(error));
      else resolve(reply);
    }),
  );
}

/** Whether a call failed because the server does not know the script: then nothing was run. */
function isUnknown(error: Error): boolean {
  return error.message.startsWith('NOSCRIPT');
}
