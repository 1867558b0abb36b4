import { readFile } from 'node:fs/promises';
import { LineCounter, parseDocument } from 'yaml';
import type { DesiredState } from '../desired-state/desired-state.ts';
import { InvalidBody } from '../errors.ts';
import { configurationReader } from '../management/config/read-configuration.ts';
import { faultsInFile, InvalidConfiguration } from './invalid-configuration.ts';

/** Reads a configuration from a file. Throws `InvalidConfiguration`, also if the file can't be read. */
export async function readConfigurationFile(path: string): Promise<DesiredState> {
  return readConfigurationText(
    await readFile(path, 'utf8').catch((error: unknown) => {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
      throw new InvalidConfiguration([`the file can not be read (${code})`]);
    }),
  );
}

/** Reads a configuration in YAML or JSON, without a gateway. Throws `InvalidConfiguration` with all faults, up to a bound. */
export function readConfigurationText(text: string): DesiredState {
  const value = parseText(text);
  try {
    return configurationReader()(value);
  } catch (error) {
    throw error instanceof InvalidBody ? new InvalidConfiguration(faultsInFile(error)) : error;
  }
}

/** Parses YAML; JSON is valid YAML. */
function parseText(text: string): unknown {
  const lineCounter = new LineCounter();
  // Pretty errors would quote the file.
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  if (document.errors.length > 0) {
    throw new InvalidConfiguration(
      document.errors.map(({ code, message, pos: [start] }) => {
        const { line, col } = lineCounter.linePos(start);
        const fault = code === 'MULTIPLE_DOCS' ? 'The file has more than one document' : message;
        return `line ${line}, column ${col}: ${fault}`;
      }),
    );
  }
  try {
    // The value is as the API would get it in JSON: no infinity, and a copy for each alias.
    return JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: MAX_ALIASES }) ?? null));
  } catch (error) {
    // An unknown alias and too many aliases throw a ReferenceError; an alias inside its own anchor makes a cycle, which JSON rejects.
    if (!(error instanceof ReferenceError || error instanceof TypeError)) throw error;
    throw new InvalidConfiguration([
      `its aliases stand for too much (${MAX_ALIASES} at most), for nothing, or for themselves`,
    ]);
  }
}

/** The most alias expansions in a file: without a limit, a few lines of aliases could fill the memory. */
const MAX_ALIASES = 100;
