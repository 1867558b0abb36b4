import type { Command } from 'commander';
import { createManagementClient, type ManagementClient } from '../../client/management-client.ts';
import { DEFAULT_RETRIES, type RetryOptions, retryingFetch } from '../../client/retrying-fetch.ts';
import { CommandFault } from '../command-fault.ts';
import { wholeNumber } from '../option-values.ts';
import { Output, type OutputOptions, writesData } from '../output/output.ts';
import type { Terminal } from '../terminal.ts';
import { type Connection, type ConnectionOptions, readConnection } from './choose-gateway.ts';

/** The tools of a command that uses the management interface. */
export interface Session {
  readonly client: ManagementClient;
  /** Waits longer: for endpoints that respond only once all of their work is done, however many records that is. */
  readonly patientClient: ManagementClient;
  /** Sends a request of a client once, without a timeout: for streams, which `signal` ends. */
  readonly fetchOnce: (request: Request, signal: AbortSignal) => Promise<Response>;
  readonly url: string;
  readonly output: Output;
  readonly terminal: Terminal;
}

export interface SessionOptions extends ConnectionOptions, OutputOptions {
  readonly retries: number;
  readonly reason?: string;
}

/** Of the patient client. `fetch` itself gives up after 300 s without the head of a response. */
export const PATIENT_MS = 290_000;
/** After 504 the gateway may still be at work for a request that a proxy has given up; another one would start all of it again. */
const PATIENT: RetryOptions = { timeoutMs: PATIENT_MS, retriedGetStatuses: [429, 502, 503] };

/** Does a command's work with its arguments, in the order of their declaration, and its options. */
export type Handle<Options> = (session: Session, words: readonly string[], options: Options) => Promise<void>;

/** Adds the options of every command that uses the management interface, and its action. */
export function managed<Options>(command: Command, terminal: Terminal, handle: Handle<Options>): Command {
  return connected(writesData(command)).action(async () => {
    // Commander parses an option that a parent declares too, such as --url, as the parent's.
    const options = command.optsWithGlobals<Options & SessionOptions>();
    // A variadic argument is a list.
    await handle(
      await openSession(options, terminal),
      command.processedArgs.flat().filter((word) => word !== undefined),
      options,
    );
  });
}

/** Adds the options that choose the gateway. */
export function connected(command: Command): Command {
  return command
    .option('--context <name>', 'use this context (or TOLLGATE_CONTEXT)')
    .option('--url <url>', 'address of the management interface (or TOLLGATE_URL)')
    .option('--token-file <path>', 'file with the token, - for standard input (or TOLLGATE_TOKEN)')
    .option(
      '--retries <count>',
      'how often a request is tried again that failed for the moment',
      wholeNumber,
      DEFAULT_RETRIES,
    );
}

/** Adds the option with the reason of a change, for the audit log. */
export function audited(command: Command): Command {
  return command.option('--reason <text>', 'why, for the audit log');
}

/** Called directly by commands that only sometimes need a gateway. */
export async function openSession(options: SessionOptions, terminal: Terminal): Promise<Session> {
  const output = new Output(options, terminal);
  const connection = await readConnection(options, terminal);
  const onWait = (reason: string, waitMs: number) =>
    output.note(`Trying again in ${waitMs / 1000} s: ${reason}.`);
  const clientOf = (patience: RetryOptions = {}) => {
    const send = retryingFetch({ retries: options.retries, ...patience, onWait });
    return createManagementClient({
      ...connection,
      headers: { 'user-agent': 'tollgate', ...reasonHeader(options.reason) },
      fetch: endingWith(connection, notingDelays(send, output)),
    });
  };
  return {
    url: connection.url,
    output,
    terminal,
    client: clientOf(),
    patientClient: clientOf(PATIENT),
    fetchOnce: (request, signal) => endingWith(connection, () => fetch(request, { signal }))(request),
  };
}

type Send = (request: Request) => Promise<Response>;

/** Says how to go on where the session of a person has ended: its secret can't be used any more. */
function endingWith({ url, token, contextName }: Connection, send: Send): Send {
  if (!token.startsWith('tgs_')) return send;
  // Without a name the login would replace the context `default`, which may be of another gateway.
  const name = contextName === 'default' ? '' : ` --name ${shellWord(contextName ?? new URL(url).hostname)}`;
  return async (request) => {
    const response = await send(request);
    if (response.status === 401)
      throw new CommandFault('credentials', `Your session has ended: run tollgate login ${url} --sso${name}`);
    return response;
  };
}

function shellWord(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Notes once that a change is not in force at once. */
function notingDelays(send: Send, output: Output): Send {
  let isNoted = false;
  return async (request) => {
    const response = await send(request);
    const seconds = response.headers.get('tollgate-applies-within');
    if (seconds !== null && !isNoted)
      output.note(`Redis is away: the change is in force on every replica within ${seconds} s.`);
    isNoted ||= seconds !== null;
    return response;
  };
}

/** UTF-8 as `fetch` sends it: one character for each byte. */
function reasonHeader(reason: string | undefined): Readonly<Record<string, string>> {
  if (!reason) return {};
  if (/[^\P{Cc}\t]/u.test(reason))
    throw new CommandFault('usage', 'The reason must be one line without control characters.');
  return { 'x-audit-reason': Buffer.from(reason).toString('latin1') };
}
