import { CONNECTION_FAULTS } from '../platform/connection-faults.ts';

/**
 * SQLSTATEs whose messages name only roles, databases and tables: 28 and 3D login, 42501 privileges, 53 out of resources, 57 shut down
 * or starting, 25006 read-only, 42P01 and 3F000 missing tables.
 */
const SHOWN_STATE = /^(?:28...|3D...|42501|53...|57...|25006|42P01|3F000)$/;

/** The reason for an error of Redis, by the first word of its message. */
const BY_WORD: Readonly<Record<string, string>> = {
  WRONGPASS: 'wrong user name or password',
  NOAUTH: 'a password is required, and none is in the URL',
  NOPERM: 'the user lacks a right: docs/settings.md has the ones that it needs',
  LOADING: 'Redis is still loading its data',
  MASTERDOWN: 'the replica has lost its master',
  CLUSTERDOWN: 'the cluster is down',
  READONLY: 'the server is a replica, and only read',
  OOM: 'Redis is out of memory',
  MISCONF: 'Redis can not write to its disk',
};

/** The reason for an error of the client libraries, which has no code, by its message. */
const BY_MESSAGE: readonly (readonly [RegExp, string])[] = [
  [/does not support SSL/, 'the server does not speak TLS'],
  [/timeout|timed out/i, 'no response in time'],
  [/terminated|Connection is closed|Stream isn't writeable|not connected/, 'not connected'],
  [/All sentinels are unreachable/, 'no sentinel responds'],
  [/Failed to refresh slots cache/, 'no node of the cluster responds'],
  [/without any password configured/, 'a password is in the URL, and the server has none'],
  [/DB index|SELECT/, 'the server has no database of the number in the URL'],
];

/** A pooler before Postgres that does not know a parameter of the connection: PgBouncer, RDS Proxy. The message names that, and no value. */
const REJECTED_PARAMETER = /^unsupported startup parameter|RDS Proxy currently doesn.t support/;

/**
 * Why a store is unavailable, for the log and the readiness check, never for a client. Holds no secret and no value: only the texts of
 * this file, and those messages of Postgres that can name nothing but roles, databases and tables.
 */
export function failureReason(error: unknown): string {
  const chain = causesOf(error);
  for (const cause of chain) {
    const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
    const said = CONNECTION_FAULTS[code] ?? BY_WORD[cause.message.split(' ', 1)[0] ?? ''];
    if (said !== undefined) return said;
    if (REJECTED_PARAMETER.test(cause.message))
      return `${cause.message} (docs/runbook.md, "Sizing", says how to connect through a pooler)`;
    if (SHOWN_STATE.test(code)) return cause.message.replaceAll('"', '');
  }
  for (const { message } of chain) {
    const said = BY_MESSAGE.find(([pattern]) => pattern.test(message))?.[1];
    if (said !== undefined) return said;
  }
  return 'not available';
}

/** Errors that end by themselves or once the server starts: by system error code or SQLSTATE, by Redis's first word, by message. */
const PASSING_CODE =
  /^(?:ECONN\w+|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|08...|53...|57...|25006)$/;
const PASSING_WORD = /^(?:LOADING|MASTERDOWN|CLUSTERDOWN|READONLY) /;
const PASSING_MESSAGE =
  /timeout|timed out|terminated|Connection is closed|Stream isn't writeable|not connected|All sentinels are unreachable/i;
/** What the client says beside the reason of the last node, if there is one. */
const NO_NODE = /Failed to refresh slots cache/;

/** Whether the store is only unavailable for now: its address and the credentials may be right. */
export function isPassing(error: unknown): boolean {
  return causesOf(error).some((cause, index, { length }) => {
    const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
    const { message } = cause;
    if (NO_NODE.test(message)) return index === length - 1;
    if (REJECTED_PARAMETER.test(message)) return false;
    return PASSING_CODE.test(code) || PASSING_WORD.test(message) || PASSING_MESSAGE.test(message);
  });
}

const DISK_FULL = '53100';
const READ_ONLY = '25006';

/** Whether Postgres had no room on its disk. */
export function isDiskFull(error: unknown): boolean {
  return hasCode(error, [DISK_FULL]);
}

/** Whether Postgres takes no writes although it responds: its disk is full, or it is read-only. */
export function isUnwritable(error: unknown): boolean {
  return hasCode(error, [DISK_FULL, READ_ONLY]);
}

function hasCode(error: unknown, codes: readonly string[]): boolean {
  return causesOf(error).some((cause) => 'code' in cause && codes.includes(String(cause.code)));
}

/** The error and its causes, the innermost last. A cyclic chain ends before it repeats. */
function causesOf(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  let next = error;
  while (next instanceof Error && !chain.includes(next)) {
    chain.push(next);
    next = next.cause ?? ('lastNodeError' in next ? next.lastNodeError : undefined);
  }
  return chain;
}
