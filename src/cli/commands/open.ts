import { type ConnectionOptions, gatewayUrl } from '../api/choose-gateway.ts';
import { openInBrowser } from '../api/open-in-browser.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';

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
      const missing = await openInBrowser(address);
      if (missing !== undefined)
        throw new CommandFault('fault', `There is no ${missing} here: open the address yourself.`);
    });
