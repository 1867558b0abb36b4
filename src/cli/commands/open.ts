import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type ConnectionOptions, gatewayUrl } from '../api/choose-gateway.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';

/** The command of each system that opens an address in the user's browser. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  linux: ['xdg-open'],
};

interface OpenOptions extends ConnectionOptions {
  readonly print?: boolean;
}

export const declareOpen: Declare = (command, terminal) =>
  void command
    .description(
      'Opens the console of the gateway in the browser. The token is not passed on: the console asks for one.',
    )
    .option('--context <name>', 'use this context (or TOLLGATE_CONTEXT)')
    .option('--url <url>', 'address of the management interface (or TOLLGATE_URL)')
    .option('--print', 'only print the address')
    .addHelpText('after', '\nExamples:\n  tollgate open --context production\n  tollgate open --print')
    .action(async (options: OpenOptions) => {
      const address = `${gatewayUrl(options, terminal)}/tollgate/console`;
      terminal.stdout.write(`${address}\n`);
      if (options.print) return;
      const [program = 'xdg-open', ...args] = OPENERS[process.platform] ?? [];
      const child = spawn(program, [...args, address], { stdio: 'ignore', detached: true });
      await once(child, 'spawn').catch(() => {
        throw new CommandFault('fault', `There is no ${program} here: open the address yourself.`);
      });
      child.unref();
    });
