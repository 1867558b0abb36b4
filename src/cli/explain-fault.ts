import { ManagementFault, UnreadableBody } from '../client/management-fault.ts';
import { isCertificateFault, isUncertain, mayBeReceived } from '../client/retrying-fetch.ts';
import { CONNECTION_FAULTS } from '../platform/connection-faults.ts';
import { CommandFault } from './command-fault.ts';
import { EXIT_CODES } from './exit-codes.ts';

/** The message for a fault, and the exit code of the process. */
export interface Explanation {
  readonly exitCode: number;
  /** Lines for standard error. */
  readonly message: string;
}

/** Maps faults to messages and exit codes. An unexpected fault keeps its stack, for a bug report. */
export function explainFault(error: unknown): Explanation {
  if (error instanceof CommandFault) return { exitCode: error.exitCode, message: error.message };
  if (error instanceof ManagementFault)
    return { exitCode: EXIT_CODES[kindOf(error)], message: sentencesOf(error) };
  if (error instanceof UnreadableBody)
    return { exitCode: EXIT_CODES.fault, message: `${error.message} ${MAY_BE_DONE}` };
  if (isRedirect(error)) return { exitCode: EXIT_CODES.fault, message: REDIRECT };
  const cause = connectionFault(error);
  if (cause !== undefined) {
    const kind = isCertificateFault(error) ? 'fault' : 'unavailable';
    return { exitCode: EXIT_CODES[kind], message: cause };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { exitCode: EXIT_CODES.fault, message };
}

function kindOf({ status, code }: ManagementFault): keyof typeof EXIT_CODES {
  if (code === UNDER_WAY) return 'unavailable';
  if (status === 401 || status === 403) return 'credentials';
  // Without a code it is not the gateway's: the path is another server's.
  if (status === 404) return code === '' ? 'fault' : 'notFound';
  if (status === 409 || status === 412) return 'conflict';
  if (status === 400 || status === 413 || status === 422) return 'usage';
  if (status === 429 || status === 502 || status === 503 || status === 504) return 'unavailable';
  return 'fault';
}

function sentencesOf({ message, fields, status, code, details, requestId }: ManagementFault): string {
  if (code === UNDER_WAY) return `An earlier attempt of this request is still under way. ${MAY_BE_DONE}`;
  const notes = [
    ...fields.map(({ field, message: rule }) => `  ${field}: ${rule}`),
    ...(typeof details.requiredScope === 'string' ? [`  The scope it needs: ${details.requiredScope}`] : []),
    ...(code === 'internal_error' && requestId !== undefined
      ? [`  The gateway's log has more under ${requestId}.`]
      : []),
  ];
  const sentences = isUncertain(status, code) ? `${message} ${MAY_BE_DONE}` : message;
  return [sentences, ...notes].join('\n');
}

/** An attempt got no response, and the gateway is still at work for it. */
const UNDER_WAY = 'idempotency_in_progress';
const REDIRECT =
  'The address responds with a redirect, which is not followed: name the address of the management interface itself.';

function isRedirect(error: unknown): boolean {
  return (
    error instanceof TypeError &&
    error.cause instanceof Error &&
    error.cause.message === 'unexpected redirect'
  );
}

/** `fetch` rejects with a TypeError; its cause has the system's error code. */
function connectionFault(error: unknown): string | undefined {
  if (error instanceof Error && error.name === 'TimeoutError')
    return `The gateway did not respond in time. ${MAY_BE_DONE}`;
  if (!(error instanceof TypeError) || !(error.cause instanceof Error)) return undefined;
  const { cause } = error;
  const reason = 'code' in cause ? String(cause.code) : cause.message;
  // The message of a body that ends before its end.
  if (error.message === 'terminated')
    return `The connection broke before the whole response had come (${reason}). ${MAY_BE_DONE}`;
  if (mayBeReceived(error))
    return `The connection broke before a response had come (${reason}). ${MAY_BE_DONE}`;
  const meaning = isCertificateFault(error) ? CONNECTION_FAULTS[reason] : undefined;
  const system = meaning?.includes('NODE_EXTRA_CA_CERTS') ? `, ${OF_SYSTEM}` : '';
  return `The gateway can not be reached (${reason})${meaning === undefined ? '' : `: ${meaning}`}${system}.`;
}

/** Node has its own list of authorities. */
const OF_SYSTEM = 'NODE_USE_SYSTEM_CA=1 adds the authorities of the system';

const MAY_BE_DONE = 'If the command makes a change, it may have been made.';
