import { Redis } from 'ioredis';
import type { RedisConnection } from '../connection.ts';
import { isUnknown, type LuaScript } from '../lua-script.ts';
import { safeRedisError } from '../redis-failure.ts';

/** The reply to one of many calls, or why there is none. */
export type ScriptReply = { readonly reply: unknown } | { readonly error: Error };

/** Most calls sent together; the next wait for their replies, so that decisions on other connections are not held up. */
const CALLS_AT_ONCE = 250;

/**
 * Calls a script with many sets of keys and arguments: in pipelines on one server; one by one on a cluster, where each call may
 * be redirected separately. Resolves with the replies in order and never rejects.
 */
export async function callScript(
  redis: RedisConnection,
  script: LuaScript,
  calls: readonly string[][],
): Promise<readonly ScriptReply[]> {
  const replies: ScriptReply[] = [];
  for (let start = 0; start < calls.length; start += CALLS_AT_ONCE) {
    replies.push(...(await callTogether(redis, script, calls.slice(start, start + CALLS_AT_ONCE))));
  }
  return replies;
}

async function callTogether(
  redis: RedisConnection,
  script: LuaScript,
  calls: readonly string[][],
): Promise<readonly ScriptReply[]> {
  if (!(redis instanceof Redis) || calls.length === 1) {
    return Promise.all(calls.map((call) => callOne(redis, script, call)));
  }
  const pipeline = redis.pipeline();
  for (const call of calls) script.addTo(pipeline, call);
  const results = await pipeline.exec();
  return Promise.all(
    calls.map((call, index) => {
      const [error, reply] = results?.[index] ?? [new Error('The pipeline was not carried out')];
      // What the server does not know it has not run, and learns from a call by itself.
      if (error && isUnknown(error)) return callOne(redis, script, call);
      return error ? { error: safeRedisError(error) } : { reply };
    }),
  );
}

function callOne(redis: RedisConnection, script: LuaScript, call: string[]): Promise<ScriptReply> {
  return new Promise((resolve) => {
    script.call(redis, call, (error, reply) => resolve(error ? { error: safeRedisError(error) } : { reply }));
  });
}
