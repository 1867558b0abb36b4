import type { Declare } from '../declare.ts';

/** These commands run on a machine of the gateway, with its settings. Most run as soon as their module is imported. */
export const declareServe: Declare = (command) =>
  void command
    .description(
      'Runs the gateway with the settings of its environment (docs/settings.md) until SIGTERM, SIGINT or SIGHUP.',
    )
    .option(
      '--check',
      'only say whether the settings and the CONFIG_FILE can be used: exit code 0, or 78 with what is wrong',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  BACKEND_URL=https://api.example.com tollgate serve\n  BACKEND_URL=https://api.example.com tollgate serve --check',
    )
    // serve.ts looks for --check itself, because it is also started directly.
    .action(async () => void (await import('../serve.ts')));

export const declareMigrate: Declare = (command) =>
  void command
    .description(
      'Applies the migrations that the database of DATABASE_URL lacks, or without it the embedded store in DATA_DIR, which must exist. Exit code 0 when it is as this version needs it, 78 for bad settings, else 1.',
    )
    .addHelpText('after', '\nExample:\n  DATABASE_URL_FILE=/run/secrets/database-url tollgate migrate')
    .action(async () => void (await import('../migrate.ts')));

export const declareDemo: Declare = (command, terminal) =>
  void command
    .description(
      'Starts a gateway with embedded stores and a sample backend, makes a plan and a key, and sends requests that are allowed and limited. On a terminal it then goes on until Ctrl-C, with the console, live traffic and curl lines to try; otherwise it ends, with exit code 0 if each got the expected status. What it stored is removed. PORT and OPS_PORT choose other ports.',
    )
    .option('--stay', 'go on also where the output is not a terminal')
    .addHelpText('after', '\nExample:\n  tollgate demo --stay > demo.txt &')
    .action(async ({ stay = false }: { readonly stay?: boolean }) => {
      const { runDemo } = await import('../demo/run-demo.ts');
      await runDemo(terminal, { stays: stay || terminal.stdout.isTTY });
    });

export const declareRotateEncryptionKey: Declare = (command) =>
  void command
    .description(
      'Brings every stored secret under the first key of ENCRYPTION_KEY while replicas work. Exit code 0 when the others can be taken out of the list, 2 when some keys still need them, 78 for bad settings, else 1.',
    )
    .addHelpText(
      'after',
      '\nExample:\n  DATABASE_URL=postgres://… ENCRYPTION_KEY="$NEW,$OLD" tollgate rotate-encryption-key',
    )
    .action(async () => void (await import('../rotate-encryption-key.ts')));
