import { StoreUnavailable } from '../../errors.ts';

/** What the client says of a command while it has no connection: advice on its own options, which no setting of ours changes. */
const NOT_CONNECTED = /Stream isn't writeable|max retries per request/;

/**
 * What may be kept of an error of the Redis client: its message, name and code. The client hangs the failed command with all
 * its arguments onto the error, and for a rejected log-in these are the password.
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

/** A reply of the Redis client, whose failure is `StoreUnavailable`. */
export async function settled<Reply>(reply: Promise<Reply>): Promise<Reply> {
  try {
    return await reply;
  } catch (error) {
    throw redisUnavailable(error);
  }
}

/** Whether a port's promise rejected because the server said no, rather than nothing. */
export function isRejected(error: unknown): boolean {
  return (
    error instanceof StoreUnavailable && error.cause instanceof Error && error.cause.name === 'ReplyError'
  );
}
