import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { parse } from 'yaml';
import { EXIT_CODES } from '../../src/cli/exit-codes.ts';
import { ERROR_CODES, TollgateError } from '../../src/errors.ts';
import { failureOf } from '../../src/http/errors/error-responses.ts';
import { SETTINGS } from '../../src/settings/settings.ts';
import { wholeProgram } from '../support/cli-guide.ts';
import type { JsonSchema } from './schema-changes.ts';

/** What of a release others depend on, as docs/releases keeps it. */
export interface InterfaceRecord {
  readonly openapi: OpenApi;
  /** By variable. */
  readonly settings: Readonly<Record<string, { readonly default: string }>>;
  /** The type of each metric. */
  readonly metrics: Readonly<Record<string, string>>;
  /** By the words of a command. */
  readonly commands: Readonly<Record<string, CommandRecord>>;
  /** The kind of each value of the chart by its path. */
  readonly chart: Readonly<Record<string, string>>;
  /** The schema of each type of event. */
  readonly events: Readonly<Record<string, JsonSchema>>;
  /** The status of each error code. */
  readonly errors: Readonly<Record<string, number>>;
  /** Of the command, by what they mean. */
  readonly exitCodes: Readonly<Record<string, number>>;
  /** What `tollgate/client` exports: `type` or `value`. */
  readonly client: Readonly<Record<string, string>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components?: unknown;
}

export interface CommandRecord {
  /** With `<>` where they are required, `[]` where they are not. */
  readonly arguments: readonly string[];
  /** As the help shows them: `--limit <count>`. */
  readonly options: readonly string[];
}

/** The interface of this tree. */
export async function presentInterface(): Promise<InterfaceRecord> {
  const program = await wholeProgram();
  return {
    openapi: json('docs/openapi.json') as OpenApi,
    settings: Object.fromEntries(
      Object.values(SETTINGS)
        .map(({ variable, byDefault }) => [variable, { default: byDefault }] as const)
        .toSorted(([one], [other]) => one.localeCompare(other)),
    ),
    metrics: metricsOf(readFileSync('docs/metrics.md', 'utf8')),
    commands: Object.fromEntries(commandsBelow(program, program.name())),
    chart: kindsOf(parse(readFileSync('k8s/chart/values.yaml', 'utf8')), ''),
    events: Object.fromEntries(
      globSync('docs/events/*.json')
        .toSorted()
        .map((file) => [basename(file, '.json'), json(file) as JsonSchema]),
    ),
    errors: Object.fromEntries(
      ERROR_CODES.map((code) => [code, failureOf(new TollgateError(code, '')).status]),
    ),
    exitCodes: EXIT_CODES,
    client: exportsOf(readFileSync('src/client/tollgate-client.ts', 'utf8')),
  };
}

function json(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** The names that a file exports. */
function exportsOf(text: string): Readonly<Record<string, string>> {
  const declared = [...text.matchAll(/^export (function|const|class|interface|type) (\w+)/gm)];
  const named = [...text.matchAll(/^export (type )?\{([^}]*)\}/gm)].flatMap(([, allTypes = '', names = '']) =>
    names
      .split(',')
      .map((name) => `${allTypes}${name.trim()}`)
      .filter((name) => name !== allTypes),
  );
  return Object.fromEntries([
    ...declared.map(([, kind = '', name = '']) => [name, /^(interface|type)$/.test(kind) ? 'type' : 'value']),
    ...named.map((name) => [name.replace(/^type /, ''), name.startsWith('type ') ? 'type' : 'value']),
  ]);
}

/** The table of docs/metrics.md, which a test compares with a scrape. */
function metricsOf(page: string): Readonly<Record<string, string>> {
  const rows = page.matchAll(/^\| `(\w+)` \| (counter|gauge|histogram|summary) \|/gm);
  return Object.fromEntries([...rows].map(([, name = '', type = '']) => [name, type]));
}

function commandsBelow(command: Command, path: string): readonly (readonly [string, CommandRecord])[] {
  const own = {
    arguments: command.registeredArguments.map((argument) =>
      argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
    ),
    options: command.options.filter(({ hidden }) => !hidden).map(({ flags }) => flags),
  };
  const below = command.commands.flatMap((each) => commandsBelow(each, `${path} ${each.name()}`));
  return [[path, own], ...below];
}

/** Lists and scalars are leaves, and so are empty objects, which hold what an installation adds. */
function kindsOf(value: unknown, path: string): Readonly<Record<string, string>> {
  if (Array.isArray(value)) return { [path]: 'list' };
  if (typeof value !== 'object' || value === null) return { [path]: value === null ? 'null' : typeof value };
  const entries = Object.entries(value);
  if (entries.length === 0) return { [path]: 'object' };
  return Object.assign(
    {},
    ...entries.map(([name, each]) => kindsOf(each, path === '' ? name : `${path}.${name}`)),
  );
}
