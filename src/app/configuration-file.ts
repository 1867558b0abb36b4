import { readFile } from 'node:fs/promises';
import { LineCounter, parseDocument } from 'yaml';
import type { DesiredState } from '../desired-state/desired-state.ts';
import { InvalidBody } from '../errors.ts';
import { configurationReader } from '../management/config/read-configuration.ts';
import { faultsInFile, InvalidConfiguration } from './invalid-configuration.ts';

/** The configuration of a file. Throws as below, also where the file can't be read. */
export async function readConfigurationFile(path: string): Promise<DesiredState> {
  return readConfigurationText(
    await readFile(path, 'utf8').catch((error: unknown) => {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
      throw new InvalidConfiguration([`the file can not be read (${code})`]);
    }),
  );
}

/** Reads a configuration in YAML or JSON, without asking a gateway. Throws `InvalidConfiguration` with all faults, up to a bound. */
export function readConfigurationText(text: string): DesiredState {
  const value = parseText(text);
  try {
    return configurationReader()(value);
  } catch (error) {
    throw error instanceof InvalidBody ? new InvalidConfiguration(faultsInFile(error)) : error;
  }
}

/** JSON is YAML as well. */
function parseText(text: string): unknown {
  const lineCounter = new LineCounter();
  // Its own errors would quote the file.
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
    // As the API would get it in JSON: no infinity, and a copy for each alias.
    return JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: MAX_ALIASES }) ?? null));
  } catch (error) {
    // Unknown aliases and too many are a ReferenceError; an alias inside of its own anchor makes a cycle, which JSON can't write.
    if (!(error instanceof ReferenceError || error instanceof TypeError)) throw error;
    throw new InvalidConfiguration([
      `its aliases stand for too much (${MAX_ALIASES} at most), for nothing, or for themselves`,
    ]);
  }
}

/** Most expansions of aliases in all: a few lines of them could fill the memory. */
const MAX_ALIASES = 100;
