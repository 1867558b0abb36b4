import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { systemCodeOf } from '../../platform/system-code.ts';
import { CommandFault } from '../command-fault.ts';
import { shownCell } from '../output/table.ts';
import type { Terminal } from '../terminal.ts';
import { type Context, type Contexts, contextsFile, noContext, readContexts } from './contexts-file.ts';

/** The options that choose the gateway of a command. */
export interface ConnectionOptions {
  readonly url?: string;
  readonly context?: string;
  readonly tokenFile?: string;
}

/** The gateway of a command, and the token for it. */
export interface Connection extends Context {
  /** The name of the context that the token is from; undefined for a token from elsewhere. */
  readonly contextName: string | undefined;
}

/**
 * The gateway of a command. `--url` and `--token-file` take precedence over a context that is named, by `--context` or
 * `TOLLGATE_CONTEXT`; that over the other variables, and all over the current context. A context's token is sent only to that context's
 * address. The contexts are read only where one is named, or the rest lacks an address or a token.
 */
export async function readConnection(options: ConnectionOptions, terminal: Terminal): Promise<Connection> {
  const address = gatewayUrl(options, terminal);
  const isNamed = namedContext(options, terminal) !== undefined;
  const given =
    options.tokenFile === undefined
      ? terminal.environment.TOLLGATE_TOKEN
      : await tokenOfFile(options.tokenFile, terminal);
  const isKept = options.tokenFile === undefined && (isNamed || !given);
  const kept = isKept ? contextFor(address, options, terminal) : undefined;
  const token = kept?.token ?? given;
  if (!token) {
    throw new CommandFault(
      'credentials',
      `There is no token for ${address}: set TOLLGATE_TOKEN, name a --token-file, or run tollgate login ${address}`,
    );
  }
  return { url: address, token: checkedToken(token), contextName: kept?.contextName };
}

/** The address of the command's gateway. */
export function gatewayUrl(options: ConnectionOptions, terminal: Terminal): string {
  const isNamed = namedContext(options, terminal) !== undefined;
  const given = options.url ?? (isNamed ? undefined : terminal.environment.TOLLGATE_URL || undefined);
  // A context that is named must exist, also where its address is not used.
  const context = isNamed || given === undefined ? chosenContext(options, terminal) : undefined;
  const url = given ?? context?.url;
  if (url !== undefined) return checkedUrl(url);
  throw new CommandFault(
    'usage',
    'No gateway is named: run tollgate login, or set TOLLGATE_URL and TOLLGATE_TOKEN.',
  );
}

/** Throws if the text is not the address of an HTTP server. */
export function checkedUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || hasMoreThanPath(url))
    throw new CommandFault('usage', 'The address must be like https://gateway.example.com:8081');
  return url.href.replace(/\/+$/, '');
}

/** In `href`, because `search` and `hash` are empty where nothing follows `?` or `#`. Paths of endpoints would become part of these. */
function hasMoreThanPath({ username, password, href }: URL): boolean {
  return username !== '' || password !== '' || /[?#]/.test(href);
}

/** The content of a file, trimmed; `-` is standard input. */
export async function tokenOfFile(path: string, { stdin }: Terminal): Promise<string> {
  try {
    return checkedToken((path === '-' ? await text(stdin) : await readFile(path, 'utf8')).trim());
  } catch (error) {
    if (error instanceof CommandFault) throw error;
    const code = systemCodeOf(error);
    throw new CommandFault('credentials', `The token file ${path} can not be read (${code}).`, {
      cause: error,
    });
  }
}

/** Throws if a header can't carry the token. No message contains the token. */
export function checkedToken(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CommandFault('credentials', 'The token is empty, or has characters that no token has.');
}

/** Says on standard error where variables of the environment keep commands from the current context. */
export function noteVariables({ current, contexts }: Contexts, { environment, stderr }: Terminal): void {
  const { TOLLGATE_CONTEXT, TOLLGATE_URL, TOLLGATE_TOKEN } = environment;
  const context = current === undefined || !Object.hasOwn(contexts, current) ? undefined : contexts[current];
  if (current === undefined || context === undefined || TOLLGATE_CONTEXT === current) return;
  const used = TOLLGATE_CONTEXT
    ? [`TOLLGATE_CONTEXT=${TOLLGATE_CONTEXT}`]
    : [
        ...(TOLLGATE_URL && TOLLGATE_URL.replace(/\/+$/, '') !== context.url ? ['TOLLGATE_URL'] : []),
        ...(TOLLGATE_TOKEN && TOLLGATE_TOKEN !== context.token ? ['TOLLGATE_TOKEN'] : []),
      ];
  if (used.length === 0) return;
  const variables = shownCell(used.join(' and '));
  stderr.write(
    `Commands use ${variables} in place of the context ${shownCell(current)}, unless --context names it.\n`,
  );
}

/** The chosen context, if that is for this address. */
function contextFor(address: string, options: ConnectionOptions, terminal: Terminal): Connection | undefined {
  const context = chosenContext(options, terminal);
  return context !== undefined && checkedUrl(context.url) === address ? context : undefined;
}

function chosenContext(options: ConnectionOptions, terminal: Terminal): Connection | undefined {
  const file = contextsFile(terminal);
  const { current, contexts } = readContexts(file);
  const named = namedContext(options, terminal);
  const name = named ?? current;
  const found = name !== undefined && Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (name !== undefined && found !== undefined) return { ...found, contextName: name };
  if (named !== undefined) throw noContext('usage', named);
  return undefined;
}

function namedContext({ context }: ConnectionOptions, { environment }: Terminal): string | undefined {
  return context ?? (environment.TOLLGATE_CONTEXT || undefined);
}
