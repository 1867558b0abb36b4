import type { Command } from 'commander';
import { systemClock } from '../../../platform/clock.ts';
import { EXACT_NUMBER_RULE, inexactNumberIn } from '../../../platform/text/exact-numbers.ts';
import { fieldName } from '../../../platform/text/field-name.ts';
import { parsedJson } from '../../../platform/text/parsed-json.ts';
import { readText, readValue } from '../../api/read-object.ts';
import { audited, managed } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Declare } from '../../declare.ts';
import type { Terminal } from '../../terminal.ts';
import type { ForeignKeys } from './foreign-keys.ts';
import type { ImportFromOptions } from './import-keys-from.ts';

interface TykFileOptions extends ImportFromOptions {
  readonly policies?: string;
  readonly hashed?: boolean;
}

export const declareImportFrom: Declare = (command, terminal) => {
  command.description(
    'Makes the keys of another gateway with their secrets, and plans with their limits, and says what could not be carried over. Plans are named by their limits, and keys with the same limits share one. It can be run again: what is there already is left alone. The exit code is 1 where a key could not be carried over.',
  );

  const kong = source(command, 'kong', 'a declarative configuration of Kong, YAML or JSON').description(
    'Imports the keys of key-auth, and the limits of rate-limiting and rate-limiting-advanced of consumers and their groups.',
  );
  importing(kong, terminal, async (file) => {
    const { readKong } = await import('./read-kong.ts');
    return readKong(await readValue(file));
  });

  const tyk = source(command, 'tyk', 'keys with their sessions, JSON lines or a list')
    .description('Imports keys with their rates and quotas, or those of their policies.')
    .option('--policies <file>', 'the policies, as Tyk lists them or as its file has them')
    .option('--hashed', "the file has SHA-256 digests of the keys: Tyk's hash_keys");
  importing<TykFileOptions>(tyk, terminal, async (file, { policies, hashed = false }) => {
    const { readTyk } = await import('./read-tyk.ts');
    const policyList = policies === undefined ? [] : await readValue(policies);
    return readTyk(await readRows(file), { hashed, policies: policyList, nowMs: systemClock.nowMs() });
  });

  const unkey = source(command, 'unkey', 'responses of apis.listKeys, JSON lines or a list').description(
    'Imports keys whose plaintext or hash the file has, with the limits and refilled credits of each.',
  );
  importing(unkey, terminal, async (file) => {
    const { readUnkey } = await import('./read-unkey.ts');
    return readUnkey(await readRows(file), systemClock.nowMs());
  });

  const csv = source(command, 'csv', 'CSV whose first row names the columns').description(
    'Imports keys from a table. It knows columns under several names, such as name or owner, key or token, hash, limit, period, external_id, tags, enabled and expires_at.',
  );
  importing(csv, terminal, async (file) => {
    const { readTable } = await import('./read-table.ts');
    return readTable(await readText(file));
  });
};

function source(command: Command, name: string, file: string): Command {
  return command
    .command(name)
    .summary(`Import ${file}`)
    .argument('<file>', `${file}; - for standard input`)
    .option('--dry-run', 'say what would be made and what would not be carried over, and make nothing')
    .option('--short-keys', 'import keys that are too short for this gateway, by their digests')
    .addHelpText(
      'after',
      `\nExamples:\n  tollgate import ${name} ${EXAMPLE_FILES[name]} --dry-run\n  tollgate import ${name} ${EXAMPLE_FILES[name]} --reason "moved here"`,
    );
}

const EXAMPLE_FILES: Readonly<Record<string, string>> = {
  kong: 'kong.yaml',
  tyk: 'keys.jsonl --policies policies.json',
  unkey: 'keys.json',
  csv: 'keys.csv',
};

function importing<Options extends ImportFromOptions>(
  command: Command,
  terminal: Terminal,
  read: (file: string, options: Options) => Promise<ForeignKeys>,
): void {
  managed<Options>(audited(command), terminal, async (session, [file = ''], options) => {
    const { importKeysFrom } = await import('./import-keys-from.ts');
    await importKeysFrom(session, command.name(), { ...(await read(file, options)), ...options });
  });
}

/** The values of JSON lines, or the one value of a JSON file. */
async function readRows(file: string): Promise<unknown> {
  const text = await readText(file);
  const value = parsedJson(text);
  if (value === undefined) return linesOf(text);
  requireExactNumbers(text, '');
  return value;
}

function requireExactNumbers(json: string, where: string): void {
  const inexact = inexactNumberIn(json);
  if (inexact !== undefined)
    throw new CommandFault('usage', `${where}${fieldName(inexact)} ${EXACT_NUMBER_RULE}`);
}

function linesOf(text: string): readonly unknown[] {
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    const where = `line ${index + 1}`;
    const value = parsedJson(line);
    if (value === undefined)
      throw new CommandFault('usage', `The file is neither JSON nor JSON lines: ${where} is not JSON.`);
    requireExactNumbers(line, `${where}: `);
    return [value];
  });
}
