import { bodyOf, createManagementClient, readable } from '../../client/management-client.ts';
import { ManagementFault } from '../../client/management-fault.ts';
import { LOOPBACK_HOST } from '../../platform/loopback-host.ts';
import { askSecret } from '../api/ask-secret.ts';
import { checkedToken, checkedUrl, noteVariables, tokenOfFile } from '../api/choose-gateway.ts';
import {
  type Context,
  type Contexts,
  changeContexts,
  contextsFile,
  noContext,
  readContexts,
} from '../api/contexts-file.ts';
import { signInAtProvider } from '../api/sign-in-at-provider.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';
import type { Terminal } from '../terminal.ts';

/** How long a gateway has to end a session, in milliseconds. */
const END_MS = 5_000;

interface LoginOptions {
  readonly name?: string;
  readonly tokenFile?: string;
  readonly sso?: boolean;
  readonly browser: boolean;
}

export const declareLogin: Declare = (command, terminal) =>
  void command
    .description(
      "Checks the token of a gateway and keeps both as a context, in a file that only you can read. The token is prompted for, or comes from standard input, from --token-file or from TOLLGATE_TOKEN: never from an argument, which other users of the machine could see. With --sso you sign in with the company's identity provider instead, and the context holds a session, of 8 hours unless the gateway has another limit.",
    )
    .argument('<url>', 'address of the management interface')
    .option('--name <name>', `name of the context; ${DEFAULT_NAME} where none is given`)
    .option('--token-file <path>', 'file with the token')
    .option('--sso', "sign in with the gateway's identity provider")
    .option('--no-browser', 'with --sso: start no browser')
    .addHelpText(
      'after',
      '\nExamples:\n  tollgate login http://localhost:8080\n  tollgate login https://gateway.example.com:8081 --name production --token-file ~/token\n  tollgate login https://gateway-admin.example.com --sso',
    )
    // Commander's message about excess arguments would repeat a token.
    .allowExcessArguments()
    .action(async (url: string, options: LoginOptions) => {
      if (command.args.length > 1)
        throw new CommandFault('usage', 'The token is never an argument: see tollgate login --help.');
      await login(checkedUrl(url), options, terminal);
    });

/** The context that a login writes where no `--name` is given. */
const DEFAULT_NAME = 'default';

async function login(url: string, options: LoginOptions, terminal: Terminal): Promise<void> {
  const { name = DEFAULT_NAME, sso, tokenFile, browser } = options;
  if (sso && tokenFile !== undefined)
    throw new CommandFault('usage', 'A login is either with --sso or with a token.');
  const file = contextsFile(terminal);
  // A fault of the file should be found before anyone signs in.
  readContexts(file);
  const { protocol, hostname } = new URL(url);
  if (protocol === 'http:' && !LOOPBACK_HOST.test(hostname))
    terminal.stderr.write('The address is not https: who can read the traffic can read the token.\n');
  const opened = sso ? await signInAtProvider({ url, opensBrowser: browser }, terminal) : undefined;
  const token = opened?.secret ?? (await tokenFor(url, options, terminal));
  const kept = { name, file, isNamed: options.name !== undefined };
  const { scopes, before, movedTo } = await keep({ url, token }, kept).catch(async (error: unknown) => {
    // No later command could end the session, because none has its secret.
    if (opened !== undefined)
      await endSession({ url, token }).catch(() => void terminal.stderr.write(SESSION_GOES_ON));
    throw error;
  });
  if (opened !== undefined)
    terminal.stderr.write(`You are signed in as ${opened.name} until ${opened.expiresAt}.\n`);
  terminal.stderr.write(`Context ${name} is ${url}, with ${scopes.length} scopes. It is kept in ${file}.\n`);
  if (movedTo !== undefined)
    terminal.stderr.write(`What was ${name} before is the context ${movedTo} now.\n`);
  noteVariables(readContexts(file), terminal);
  if (before !== undefined && before.token !== token && movedTo === undefined)
    await endSession(before).catch(() => {});
}

const SESSION_GOES_ON = 'The session was not ended: without its secret, it goes on until it expires.\n';

interface KeptAs {
  readonly name: string;
  readonly file: string;
  readonly isNamed: boolean;
}

interface Kept {
  readonly scopes: readonly string[];
  readonly before: Context | undefined;
  readonly movedTo: string | undefined;
}

/**
 * Checks the token of a context, and writes it to the file. Resolves with the scopes, and what the context was before. If that is of another
 * gateway and no name was given, it is kept under the name of its host: its token may be kept nowhere else.
 */
async function keep({ url, token }: Context, { name, file, isNamed }: KeptAs): Promise<Kept> {
  const call = createManagementClient({ url, token }).GET('/tollgate/whoami');
  const { scopes } = await bodyOf(call);
  // The token must not be kept for another server that responds to any path.
  if (!Array.isArray(scopes)) throw new ManagementFault((await call).response, undefined);
  let before: Context | undefined;
  let movedTo: string | undefined;
  await changeContexts(file, ({ contexts }) => {
    before = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
    if (isNamed || before === undefined || before.url === url)
      return { current: name, contexts: { ...contexts, [name]: { url, token } } };
    movedTo = freeName(before, contexts);
    return { current: name, contexts: { ...contexts, [movedTo]: before, [name]: { url, token } } };
  });
  return { scopes, before, movedTo };
}

/** The host of a context, or that with a number if another context has this name. */
function freeName({ url, token }: Context, contexts: Contexts['contexts']): string {
  const { host } = new URL(url);
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? host : `${host}-${number}`;
    const present = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
    // The name without --name is the new context's.
    const isKept = present === undefined || (present.url === url && present.token === token);
    if (isKept && name !== DEFAULT_NAME) return name;
  }
}

async function tokenFor(url: string, { tokenFile }: LoginOptions, terminal: Terminal): Promise<string> {
  if (tokenFile !== undefined) return tokenOfFile(tokenFile, terminal);
  const given = terminal.environment.TOLLGATE_TOKEN;
  if (!given) return checkedToken(await askSecret(`Token for ${url}: `, terminal));
  terminal.stderr.write('The token is that of TOLLGATE_TOKEN.\n');
  return checkedToken(given);
}

export const declareLogout: Declare = (command, terminal) =>
  void command
    .description(
      'Removes a context. A session of --sso ends at the gateway; a token stays valid, and may be in use elsewhere.',
    )
    .option('--name <name>', 'name of the context, if not the current one')
    .addHelpText('after', '\nExample:\n  tollgate logout --name production')
    .action(async (options: { readonly name?: string }) => {
      const file = contextsFile(terminal);
      const { current, contexts: found } = readContexts(file);
      const name = options.name ?? (terminal.environment.TOLLGATE_CONTEXT || current);
      if (name === undefined)
        throw new CommandFault('notFound', 'No context is current: name one with --name.');
      if (!Object.hasOwn(found, name)) throw noContext('notFound', name);
      const [end] = await Promise.allSettled([found[name] && endSession(found[name])]);
      // Also where the gateway is gone: the secret must not stay in the file because of that.
      await changeContexts(file, (kept) => {
        const { [name]: _removed, ...others } = kept.contexts;
        return { current: kept.current === name ? undefined : kept.current, contexts: others };
      });
      terminal.stderr.write(`Context ${name} is removed.\n`);
      if (end.status === 'fulfilled') return;
      terminal.stderr.write(SESSION_GOES_ON);
      throw end.reason;
    });

/** Ends the session that a context holds, if it holds one. One that has ended before is no fault. */
async function endSession({ url, token }: Context): Promise<void> {
  if (!token.startsWith('tgs_')) return;
  const params = { path: { sessionId: 'current' } };
  const call = createManagementClient({ url, token }).DELETE('/tollgate/session/{sessionId}', {
    params,
    signal: AbortSignal.timeout(END_MS),
  });
  const { response, error } = await readable(call);
  if (!response.ok && response.status !== 401 && response.status !== 404)
    throw new ManagementFault(response, error);
}
