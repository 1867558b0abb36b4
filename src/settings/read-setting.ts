import type { StartFiles } from '../platform/process/start-files.ts';
import { systemCodeOf } from '../platform/system-code.ts';
import type { Parse } from './setting-parsers.ts';

/** One setting: how its variable is named, read and shown. */
export interface Setting<T> {
  readonly variable: string;
  /** Applies if the variable is missing or empty. */
  readonly byDefault: string;
  readonly parse: Parse<T>;
  /** Reads the content of the file that `<variable>_FILE` names; undefined = the setting has no such variable. */
  readonly parseFile: Parse<T> | undefined;
  /** Masked everywhere settings are shown. */
  readonly secret: boolean;
  /** An empty value is kept, and does not mean the default. */
  readonly emptyCounts: boolean;
}

/** The values of a table of settings, as their parsers give them. */
export type ValuesOf<T extends Readonly<Record<string, Setting<unknown>>>> = {
  readonly [K in keyof T]: ReturnType<T[K]['parse']>;
};

/** The environment variables as a process has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where settings are read from. */
export interface SettingSources {
  readonly environment: Environment;
  readonly files: StartFiles;
}

/** A setting with a default. */
export function setting<T>(variable: string, byDefault: string, parse: Parse<T>): Setting<T> {
  return { variable, byDefault, parse, parseFile: undefined, secret: false, emptyCounts: false };
}

/** A setting that is masked and may be in a file. */
export function secret<T>(variable: string, parse: Parse<T>): Setting<T> {
  return { variable, byDefault: '', parse, parseFile: parse, secret: true, emptyCounts: false };
}

/** Reads the settings of a table. Adds a sentence to `faults` for each invalid one. */
export function readTable<T extends Readonly<Record<string, Setting<unknown>>>>(
  table: T,
  sources: SettingSources,
  faults: string[],
): ValuesOf<T> {
  const entries = Object.entries(table).map(([name, row]) => [name, readSetting(row, sources, faults)]);
  // The rows determine the types. A faulty row is undefined here, but then the caller throws.
  return Object.fromEntries(entries) as ValuesOf<T>;
}

function readSetting(
  { variable, byDefault, parse, parseFile, emptyCounts }: Setting<unknown>,
  { environment, files }: SettingSources,
  faults: string[],
): unknown {
  const direct = environment[variable]?.trim();
  const file = parseFile && environment[`${variable}_FILE`]?.trim();
  const readValue = () => {
    if (parseFile === undefined || !file) {
      const isMissing = direct === undefined || (direct === '' && !emptyCounts);
      return parse(isMissing ? byDefault : direct);
    }
    if (direct) throw new Error(`is set both directly and by ${variable}_FILE; keep one`);
    const content = orFault(`${variable}_FILE`, () => contentOf(file, files), faults);
    return content && parseFile(content);
  };
  return orFault(variable, readValue, faults);
}

function contentOf(file: string, files: StartFiles): string {
  let content: string;
  try {
    content = files.readSync(file).toString('utf8').trim();
  } catch (error) {
    throw new Error(`the file can not be read (${systemCodeOf(error)})`);
  }
  if (content === '') throw new Error('the file is empty');
  return content;
}

/** The value that is read; undefined, with one more fault, if that throws. */
export function orFault<T>(variable: string, read: () => T, faults: string[]): T | undefined {
  try {
    return read();
  } catch (error) {
    // The messages of parsers never repeat the value.
    faults.push(`${variable}: ${error instanceof Error ? error.message : 'is invalid'}`);
    return undefined;
  }
}
