import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Cluster, Command } from 'ioredis';
import type { RedisConnection } from './connection.ts';
import { redisUnavailable } from './redis-failure.ts';

/** Called once with either the failure (the client's own error: see `safeRedisError` before keeping it) or the reply. */
export type ScriptCallback = (error: Error | null | undefined, reply?: unknown) => void;

/**
 * A Lua script, called by its digest. Where the server does not know it (a new or restarted server, SCRIPT FLUSH) the call
 * is made again with the text, which also makes the server learn it. An EVALSHA that the server does not know has run nothing,
 * so the second call can't count twice.
 */
export class LuaScript {
  readonly #text: string;
  readonly #sha: string;
  /** The name of the command and the digest as they are sent, but for the last line end. */
  readonly #head: string;
  readonly #numberOfKeys: number;

  /** Reads the file, whose name ends in the number of KEYS (`addCount-2.lua`), or in `n` for any. Throws when there is no such file. */
  constructor(file: URL) {
    this.#text = readFileSync(file, 'utf8');
    this.#sha = createHash('sha1').update(this.#text).digest('hex');
    this.#head = `${bulkString('evalsha')}$${this.#sha.length}\r\n${this.#sha}`;
    this.#numberOfKeys = Number(/-(\d+)\.lua$/.exec(file.pathname)?.[1]);
  }

  /** Runs the script with its KEYS followed by its ARGV. With a callback, because decisions are made in the hot path. */
  call(redis: RedisConnection, keysAndArguments: string[], onReply: ScriptCallback): void {
    this.#send(redis, this.#numberOfKeys, keysAndArguments, onReply);
  }

  /** Runs a script that takes any number of KEYS (`decideRequests-n.lua`). */
  callWithKeys(
    redis: RedisConnection,
    keys: readonly string[],
    args: readonly string[],
    onReply: ScriptCallback,
  ): void {
    this.#send(redis, keys.length, [...keys, ...args], onReply);
  }

  /** The same as a promise; rejects with `StoreUnavailable`. */
  async runWithKeys(
    redis: RedisConnection,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.callWithKeys(redis, keys, args, (error, reply) => {
      if (error) reject(redisUnavailable(error));
      else resolve(reply);
    });
    return promise;
  }

  /** The same as a promise; rejects with `StoreUnavailable`. */
  async run(redis: RedisConnection, keysAndArguments: string[]): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.call(redis, keysAndArguments, (error, reply) => {
      if (error) reject(redisUnavailable(error));
      else resolve(reply);
    });
    return promise;
  }

  // Not with the client's own callbacks: those, and all that they refer to, would live until the old generation is collected.
  #send(redis: RedisConnection, keys: number, keysAndArguments: string[], onReply: ScriptCallback): void {
    const succeeded = (reply: unknown) => onReply(null, reply);
    this.#callByDigest(redis, keys, keysAndArguments).then(succeeded, (error: Error) => {
      if (isUnknown(error)) redis.eval(this.#text, keys, ...keysAndArguments).then(succeeded, onReply);
      else onReply(error);
    });
  }

  #callByDigest(redis: RedisConnection, keys: number, keysAndArguments: string[]): Promise<unknown> {
    // A cluster finds the server by the keys, which it reads from the arguments.
    if (redis instanceof Cluster) return redis.evalsha(this.#sha, keys, ...keysAndArguments);
    const command = new EncodedCall(this.#head, keys, keysAndArguments);
    redis.sendCommand(command as unknown as Command);
    return command.promise;
  }
}

/** A command of the client, with the methods that only its types keep from others. A test fails when the client does without them. */
interface OpenCommand extends Pick<Command, Exclude<keyof Command, 'toWritable'>> {
  toWritable(): string;
  initPromise(): void;
  _convertValue(resolve: (value: unknown) => void): (reply: unknown) => void;
  _clearTimers(): void;
}
const OpenCommand = Command as unknown as new (
  ...options: ConstructorParameters<typeof Command>
) => OpenCommand;

/** A call as it is sent. The client would check each argument, and join them after more checks, for each call anew. */
class EncodedCall extends OpenCommand {
  readonly #text: string;

  constructor(head: string, keys: number, keysAndArguments: readonly string[]) {
    super('evalsha', [], { replyEncoding: 'utf8' });
    const start = `*${keysAndArguments.length + 3}\r\n${head}`;
    const count = String(keys);
    let text = start + lengthLine(count.length) + count;
    for (const argument of keysAndArguments) text += lengthLine(argument.length) + argument;
    text += '\r\n';
    // Lengths are in bytes. Nearly all calls are plain ASCII, and to look once is cheaper than once for each argument.
    const isAscii = Buffer.byteLength(text) === text.length;
    this.#text = isAscii ? text : `${start}\r\n${[count, ...keysAndArguments].map(bulkString).join('')}`;
  }

  override toWritable(): string {
    return this.#text;
  }

  /**
   * As the client's own does it, but for where the functions live. V8 makes a function that is written as the value of a property in the
   * old generation, where each would keep its command, its reply and its promise until that is collected.
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

/** Lines of shorter arguments than this are made once: nearly all arguments of decisions are. */
const MADE_LINES = 256;
const LENGTH_LINES: readonly string[] = Array.from(
  { length: MADE_LINES },
  (_, length) => `\r\n$${length}\r\n`,
);

/** The end of one argument's line, and the line that says how long the next one is. */
function lengthLine(bytes: number): string {
  return LENGTH_LINES[bytes] ?? `\r\n$${bytes}\r\n`;
}

/** As the protocol of Redis has it. */
function bulkString(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

/** Whether a call failed because the server does not know the script: then nothing was run. */
function isUnknown(error: Error): boolean {
  return error.message.startsWith('NOSCRIPT');
}
