import { bodyOf, createManagementClient } from '../../client/management-client.ts';
import { ManagementFault } from '../../client/management-fault.ts';
import { askSecret } from '../api/ask-secret.ts';
import { checkedUrl, tokenOfFile } from '../api/choose-gateway.ts';
import { contextsFile, readContexts, writeContexts } from '../api/contexts-file.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';
import { Output, type OutputOptions, writesData } from '../output/output.ts';
import type { Terminal } from '../terminal.ts';

interface LoginOptions {
  readonly name: string;
  readonly tokenFile?: string;
}

export const declareLogin: Declare = (command, terminal) =>
  void command
    .description(
      'Checks the token of a gateway and keeps both as a context, in a file that only you can read. The token is prompted for, or comes from standard input, from --token-file or from TOLLGATE_TOKEN: never from an argument, which other users of the machine could see.',
    )
    .argument('<url>', 'address of the management interface')
    .option('--name <name>', 'name of the context', 'default')
    .option('--token-file <path>', 'file with the token')
    .addHelpText(
      'after',
      '\nExamples:\n  tollgate login http://localhost:8080\n  tollgate login https://gateway.example.com:8081 --name production --token-file ~/token',
    )
    .action(async (url: string, options: LoginOptions) => login(url, options, terminal));

async function login(given: string, { name, tokenFile }: LoginOptions, terminal: Terminal): Promise<void> {
  const url = checkedUrl(given);
  const token =
    tokenFile !== undefined
      ? tokenOfFile(tokenFile)
      : terminal.environment.TOLLGATE_TOKEN || (await askSecret(`Token for ${url}: `, terminal));
  const call = createManagementClient({ url, token }).GET('/tollgate/whoami');
  const { scopes } = await bodyOf(call);
  // The token must not be kept for another server that responds to any path.
  if (!Array.isArray(scopes)) throw new ManagementFault((await call).response, undefined);
  const file = contextsFile(terminal);
  const { contexts } = readContexts(file);
  writeContexts(file, { current: name, contexts: { ...contexts, [name]: { url, token } } });
  terminal.stderr.write(`Context ${name} is ${url}, with ${scopes.length} scopes. It is kept in ${file}.\n`);
  const { protocol, hostname } = new URL(url);
  if (protocol === 'http:' && !/^(localhost|127\..*|\[::1\])$/.test(hostname))
    terminal.stderr.write('The address is not https: who can read the traffic can read the token.\n');
}

export const declareContext: Declare = (command, terminal) => {
  const list = command
    .command('list')
    .summary('List the contexts')
    .description('Lists the contexts, without their tokens.')
    .addHelpText('after', '\nExample:\n  tollgate context list -o id');
  writesData(list).action(async (options: OutputOptions) => {
    const { current, contexts } = readContexts(contextsFile(terminal));
    const rows = Object.entries(contexts).map(([name, { url }]) => ({
      name,
      url,
      current: name === current,
    }));
    await new Output(options, terminal).report(CONTEXT_LISTING, rows, rows);
  });
  command
    .command('use')
    .summary('Choose the context that is used where none is named')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  tollgate context use production')
    .action((name: string) => {
      const file = contextsFile(terminal);
      const { contexts } = readContexts(file);
      if (!Object.hasOwn(contexts, name))
        throw new CommandFault(
          'notFound',
          `There is no context ${name}: tollgate context list shows those that are.`,
        );
      writeContexts(file, { current: name, contexts });
    });
};

const CONTEXT_LISTING = {
  columns: [
    { name: 'name', toCell: ({ name }: ContextRow) => name },
    { name: 'url', toCell: ({ url }: ContextRow) => url },
    { name: 'current', toCell: ({ current }: ContextRow) => (current ? 'yes' : '') },
  ],
  idOf: ({ name }: ContextRow) => name,
};

interface ContextRow {
  readonly name: string;
  readonly url: string;
  readonly current: boolean;
}
