import { StoreUnavailable } from '../../errors.ts';

/** The client's messages for a command without a connection. They name options of the client, which no setting of ours changes. */
const NOT_CONNECTED = /Stream isn't writeable|max retries per request/;

/**
 * A copy of an error of the Redis client that is safe to keep: message, name and code. The client attaches the failed command with all
 * its arguments to the error, and the arguments of a rejected login contain the password.
 */
export function safeRedisError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('unknown failure of the Redis client');
  const safe = new Error(NOT_CONNECTED.test(error.message) ? 'not connected' : error.message);
  safe.name = error.name;
  if ('code' in error && typeof error.code === 'string') Object.assign(safe, { code: error.code });
  return safe;
}

/** The error that a port's promise rejects with when Redis failed. */
export function redisUnavailable(error: unknown): StoreUnavailable {
  return error instanceof StoreUnavailable ? error : new StoreUnavailable('redis', safeRedisError(error));
}

/** Resolves with a reply of the Redis client. Rejects with `StoreUnavailable`. */
export async function settled<Reply>(reply: Promise<Reply>): Promise<Reply> {
  try {
    return await reply;
  } catch (error) {
    throw redisUnavailable(error);
  }
}

/** Whether a port's promise rejected because the server replied with an error, not because it did not reply. */
export function isRejected(error: unknown): boolean {
  return (
    error instanceof StoreUnavailable && error.cause instanceof Error && error.cause.name === 'ReplyError'
  );
}
