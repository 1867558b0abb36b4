import { readFileSync } from 'node:fs';
import type { Parse } from './setting-values.ts';

/** One setting: how its variable is named, read and shown. */
export interface Setting<T> {
  readonly variable: string;
  /** What applies when the variable is missing or empty; undefined = the setting is required. */
  readonly byDefault: string | undefined;
  readonly parse: Parse<T>;
  /** Reads what `<variable>_FILE` names, which may be set instead; undefined = it may not. */
  readonly parseFile: Parse<T> | undefined;
  /** Masked wherever settings are shown. */
  readonly secret: boolean;
  /** An empty value is a value, different from a missing one. */
  readonly emptyCounts: boolean;
}

/** The values of a table of settings, as their parsers give them. */
export type ValuesOf<T extends Readonly<Record<string, Setting<unknown>>>> = {
  readonly [K in keyof T]: ReturnType<T[K]['parse']>;
};

/** The environment variables as a process has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One that has a default. */
export function setting<T>(variable: string, byDefault: string, parse: Parse<T>): Setting<T> {
  return { variable, byDefault, parse, parseFile: undefined, secret: false, emptyCounts: false };
}

/** One without which the gateway does not start. */
export function required<T>(variable: string, parse: Parse<T>): Setting<T> {
  return { variable, byDefault: undefined, parse, parseFile: undefined, secret: false, emptyCounts: false };
}

/** One that is masked, and may be in a file. */
export function secret<T>(variable: string, parse: Parse<T>): Setting<T> {
  return { variable, byDefault: '', parse, parseFile: parse, secret: true, emptyCounts: false };
}

/** Reads the settings of a table. Adds a sentence to `faults` for each that can't be used. */
export function readTable<T extends Readonly<Record<string, Setting<unknown>>>>(
  table: T,
  environment: Environment,
  faults: string[],
): ValuesOf<T> {
  const entries = Object.entries(table).map(([name, row]) => [name, readSetting(row, environment, faults)]);
  // The rows of the table decide the types; a row with a fault leaves undefined here, and then the object is thrown away.
  return Object.fromEntries(entries) as ValuesOf<T>;
}

function readSetting(row: Setting<unknown>, environment: Environment, faults: string[]): unknown {
  const direct = environment[row.variable]?.trim();
  const file = row.parseFile === undefined ? undefined : environment[`${row.variable}_FILE`]?.trim();
  if (row.parseFile !== undefined && file) {
    if (direct) faults.push(`${row.variable}: is set both directly and by ${row.variable}_FILE; keep one`);
    const content = direct ? undefined : readText(file, row.variable, faults);
    return content === undefined
      ? undefined
      : parsedValue({ parse: row.parseFile, variable: row.variable }, content, faults);
  }
  const isMissing = direct === undefined || (direct === '' && !row.emptyCounts);
  const value = isMissing ? row.byDefault : direct;
  if (value !== undefined) return parsedValue(row, value, faults);
  faults.push(`${row.variable}: is required`);
  return undefined;
}

/** Undefined, and a fault more, for a file that can't be read or is empty. */
function readText(file: string, variable: string, faults: string[]): string | undefined {
  try {
    const content = readFileSync(file, 'utf8').trim();
    if (content !== '') return content;
    faults.push(`${variable}_FILE: the file is empty`);
  } catch (error) {
    const reason =
      typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown error';
    faults.push(`${variable}_FILE: the file can not be read (${reason})`);
  }
  return undefined;
}

function parsedValue(
  { parse, variable }: Pick<Setting<unknown>, 'parse' | 'variable'>,
  value: string,
  faults: string[],
): unknown {
  try {
    return parse(value);
  } catch (error) {
    // Parsers throw sentences that never repeat the value.
    faults.push(`${variable}: ${error instanceof Error ? error.message : 'is invalid'}`);
    return undefined;
  }
}
