import type { DesiredState } from '../desired-state/desired-state.ts';
import { InvalidBody } from '../errors.ts';
import { configurationReader } from '../management/configuration/read-configuration.ts';
import type { PathCase } from '../paths/path-readings.ts';
import { StartFiles } from '../platform/process/start-files.ts';
import { systemCodeOf } from '../platform/system-code.ts';
import { decodeUtf8 } from '../platform/text/utf8.ts';
import { InvalidYaml, parseYaml } from '../platform/text/yaml.ts';
import { faultsInFile, InvalidConfiguration } from './invalid-configuration.ts';

/** Reads a configuration from a file, which `management/configuration/` validates. Throws `InvalidConfiguration`, also if the file can't be read. */
export async function readConfigurationFile(
  path: string,
  pathCase: PathCase,
  files = new StartFiles(),
): Promise<DesiredState> {
  const bytes = await files.read(path).catch((error: unknown) => {
    const code = systemCodeOf(error);
    throw new InvalidConfiguration([`the file can not be read (${code})`]);
  });
  const text = decodeUtf8(bytes);
  if (text === undefined) throw new InvalidConfiguration(['the file is not UTF-8']);
  return readConfigurationText(text, pathCase);
}

/** Reads a configuration in YAML or JSON, without a gateway. Throws `InvalidConfiguration` with all faults, up to a bound. */
export function readConfigurationText(text: string, pathCase: PathCase): DesiredState {
  try {
    return readConfigurationValue(parseYaml(text), pathCase);
  } catch (error) {
    throw error instanceof InvalidYaml ? new InvalidConfiguration(error.faults) : error;
  }
}

/** Reads the value of a configuration file. Throws `InvalidConfiguration` with all faults, up to a bound. */
export function readConfigurationValue(value: unknown, pathCase: PathCase): DesiredState {
  try {
    return configurationReader(pathCase)(value);
  } catch (error) {
    throw error instanceof InvalidBody ? new InvalidConfiguration(faultsInFile(error)) : error;
  }
}
