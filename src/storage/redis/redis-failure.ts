import { StoreUnavailable } from '../../errors.ts';

// The client's messages for a command without a connection, and for one whose connection was lost, name its options, which no setting changes.
const WITHOUT_CONNECTION = /Stream isn't writeable/;
const CONNECTION_LOST = /max retries per request/;
const NOT_SENT = 'not sent: not connected';
/** How a server of a cluster rejects a call for a slot that it lacks, or has only in part. */
const REDIRECTION = /^(?:MOVED|ASK|TRYAGAIN) /;
const ELSEWHERE = /^(?:MOVED|ASK) /;
/** How a server replies where an entry has another type, or not what a script reads in it. */
const UNREADABLE = /^(?:WRONGTYPE |ERR .*user_script)/;
/** The client's message once the servers of a cluster have redirected a call too often, the last time with this reply. */
const LAST_REPLY = /^Too many Cluster redirections\. Last error: ReplyError: /;

/**
 * A copy of an error of the Redis client that is safe to keep: message, name and code. The client attaches the failed command with all
 * its arguments to the error, and the arguments of a rejected login contain the password. If no node of a cluster could be used, its
 * cause says why the last one could not.
 */
export function safeRedisError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('unknown failure of the Redis client');
  const safe = new Error(safeMessage(error.message));
  safe.name = error.name;
  if ('code' in error && typeof error.code === 'string') Object.assign(safe, { code: error.code });
  if ('lastNodeError' in error && error.lastNodeError instanceof Error)
    safe.cause = safeRedisError(error.lastNodeError);
  return safe;
}

/** The error that a port's promise rejects with when Redis failed. */
export function redisUnavailable(error: unknown): StoreUnavailable {
  return error instanceof StoreUnavailable ? error : new StoreUnavailable('redis', safeRedisError(error));
}

/** The error for a reply that a script of ours does not give. */
export function unexpectedReply(): Error {
  return new Error('Redis replied to a script call with something else than the script returns');
}

/** Resolves with a reply of the Redis client. Rejects with `StoreUnavailable`. */
export async function settled<Reply>(reply: Promise<Reply>): Promise<Reply> {
  try {
    return await reply;
  } catch (error) {
    throw redisUnavailable(error);
  }
}

/** Whether a port's promise rejected without any effect: the command was not sent, or the last server that got it replied with an error. */
export function hadNoEffect(error: unknown): boolean {
  if (!(error instanceof StoreUnavailable && error.cause instanceof Error)) return false;
  const { name, message } = error.cause;
  return name === 'ReplyError' || message === NOT_SENT || LAST_REPLY.test(message);
}

/** Whether a server of a cluster has run nothing: the slot is at another one, or is being moved. Takes the client's error, or that of a port. */
export function isRedirection(error: unknown): boolean {
  return REDIRECTION.test(messageOf(error));
}

/** Whether a server of a cluster has run nothing because the slot is at another one, which may run it. Takes the same errors. */
export function isElsewhere(error: unknown): boolean {
  return ELSEWHERE.test(messageOf(error));
}

/** Whether a server runs, but can't read an entry that the call needs: calls for others may succeed. Takes the same errors. */
export function isUnreadable(error: unknown): boolean {
  return UNREADABLE.test(messageOf(error));
}

function messageOf(error: unknown): string {
  const cause = error instanceof StoreUnavailable ? error.cause : error;
  return cause instanceof Error ? cause.message : '';
}

function safeMessage(message: string): string {
  if (WITHOUT_CONNECTION.test(message)) return NOT_SENT;
  return CONNECTION_LOST.test(message) ? 'not connected any more' : message;
}
