// The room `cli`: the `tollgate` command.
// In: the words of a command line, files and the environment.
// Out: calls of the management interface, tables or JSON on the standard output, and an exit code.

import { type AddHelpTextContext, Command } from 'commander';
import { gatewayVersion } from '../platform/gateway-version.ts';
import type { Declare } from './declare.ts';
import type { Terminal } from './terminal.ts';

interface TopCommand {
  readonly summary: string;
  /** Imports only the module of the command that runs, so that commands start fast. */
  readonly load: () => Promise<Declare>;
}

/** All commands of the top level, in the order of the help. */
const COMMANDS: Readonly<Record<string, TopCommand>> = {
  serve: {
    summary: 'Run the gateway',
    load: async () => (await import('./commands/gateway.ts')).declareServe,
  },
  migrate: {
    summary: 'Bring the database to the schema of this version',
    load: async () => (await import('./commands/gateway.ts')).declareMigrate,
  },
  demo: {
    summary: 'Try a gateway with a sample backend, a plan and a key',
    load: async () => (await import('./commands/gateway.ts')).declareDemo,
  },
  'rotate-encryption-key': {
    summary: 'Bring every stored secret under a new ENCRYPTION_KEY',
    load: async () => (await import('./commands/gateway.ts')).declareRotateEncryptionKey,
  },
  doctor: {
    summary: 'Look for what is wrong with an installation',
    load: async () => (await import('./commands/doctor.ts')).declareDoctor,
  },
  size: {
    summary: 'Say what an installation needs for a number of requests and keys',
    load: async () => (await import('./commands/size.ts')).declareSize,
  },
  login: {
    summary: 'Keep a gateway and a token or a session for it as a context',
    load: async () => (await import('./commands/login.ts')).declareLogin,
  },
  logout: {
    summary: 'Remove a context, and end the session that it holds',
    load: async () => (await import('./commands/login.ts')).declareLogout,
  },
  context: {
    summary: 'List the contexts, or choose the one to use',
    load: async () => (await import('./commands/contexts.ts')).declareContext,
  },
  whoami: {
    summary: 'Say as whom the gateway sees you',
    load: async () => (await import('./commands/whoami.ts')).declareWhoami,
  },
  keys: {
    summary: 'Consumer API keys',
    load: async () => (await import('./commands/keys/keys.ts')).declareKeys,
  },
  import: {
    summary: 'Keys and limits of Kong, Tyk, Unkey or a table',
    load: async () => (await import('./commands/import/declare-import-from.ts')).declareImportFrom,
  },
  jobs: {
    summary: 'Changes of many keys in the background',
    load: async () => (await import('./commands/jobs/jobs.ts')).declareJobs,
  },
  verify: {
    summary: 'Say whether a request with a secret would be allowed',
    load: async () => (await import('./commands/verify.ts')).declareVerify,
  },
  plans: {
    summary: 'Rate limit plans',
    load: async () => (await import('./commands/plans/plans.ts')).declarePlans,
  },
  limits: {
    summary: 'The live counters of a key',
    load: async () => (await import('./commands/limits.ts')).declareLimits,
  },
  usage: {
    summary: 'Usage of all keys over time',
    load: async () => (await import('./commands/usage.ts')).declareUsage,
  },
  config: {
    summary: 'Plans, keys and webhooks as a configuration',
    load: async () => (await import('./commands/config/config.ts')).declareConfig,
  },
  tokens: {
    summary: 'Admin tokens and their scopes',
    load: async () => (await import('./commands/tokens.ts')).declareTokens,
  },
  webhooks: {
    summary: 'Endpoints that events are sent to',
    load: async () => (await import('./commands/webhooks/declare-webhooks.ts')).declareWebhooks,
  },
  events: {
    summary: 'What happens in the gateway, live',
    load: async () => (await import('./commands/events.ts')).declareEvents,
  },
  audit: {
    summary: 'Who changed what',
    load: async () => (await import('./commands/audit.ts')).declareAudit,
  },
  top: {
    summary: 'The busiest keys, live',
    load: async () => (await import('./commands/top.ts')).declareTop,
  },
  open: {
    summary: 'Open the console in the browser',
    load: async () => (await import('./commands/open.ts')).declareOpen,
  },
  completion: {
    summary: 'Print a script that completes words in a shell',
    load: async () => (await import('./commands/completion.ts')).declareCompletion,
  },
};

/** Commander shows the help of the command above one that is not there. */
function requireKnownCommand({ error, command }: AddHelpTextContext): string {
  const [word = '-'] = command.args;
  if (!error && command.commands.length > 0 && !word.startsWith('-'))
    command.error(`error: unknown command '${word}'`);
  return '';
}

/** The program. `name` is the one command that is declared in full, or 'all'; the others have only their names and summaries. */
export async function createProgram(terminal: Terminal, name: string | undefined): Promise<Command> {
  const program = new Command('tollgate')
    .description('Runs and administers Tollgate, an API gateway with keys, exact rate limits and usage.')
    .version(gatewayVersion(), '-V, --version', 'Print the version')
    .helpOption('-h, --help', 'Print what a command does, with examples')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
      // Not with the value of an unknown option, which may be a token.
      outputError: (text, write) =>
        write(text.replace(/(unknown option '(?:--[^=']+|-[^-']))(?:[^'].*)?'/s, "$1'")),
      getOutHelpWidth: () => terminal.stdout.columns ?? 100,
      getErrHelpWidth: () => terminal.stderr.columns ?? 100,
    })
    .configureHelp({ showGlobalOptions: false })
    .addHelpText('beforeAll', requireKnownCommand)
    .showSuggestionAfterError();
  for (const [commandName, { summary, load }] of Object.entries(COMMANDS)) {
    const command = program
      .command(commandName)
      .summary(summary)
      .description(`${summary}.`)
      .helpCommand(false);
    if (name === commandName || name === 'all') (await load())(command, terminal);
  }
  program.command('help').argument('[command...]').summary('Print what a command does, with examples');
  return program;
}
