import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { isObject } from '../../platform/is-object.ts';
import { systemCodeOf } from '../../platform/system-code.ts';
import { decodeUtf8 } from '../../platform/text/utf8.ts';
import { CommandFault } from '../command-fault.ts';

/** A JSON or YAML object from a file; `-` is standard input. */
export async function readObject(path: string): Promise<Readonly<Record<string, unknown>>> {
  const value = await readValue(path);
  if (isObject(value)) return value;
  throw new CommandFault('usage', `${path} holds no object.`);
}

/** The object in a file without its `readOnly` fields: those that `show` prints, and that no change takes. */
export async function readFields(
  file: string | undefined,
  readOnly: readonly string[],
): Promise<Record<string, unknown>> {
  if (file === undefined) return {};
  const fields = Object.entries(await readObject(file));
  return Object.fromEntries(fields.filter(([name]) => !readOnly.includes(name)));
}

/** The record that a command changes, and the file with its fields. */
interface ChangedRecord {
  readonly idField: string;
  readonly id: string;
  readonly file: string | undefined;
}

/** Fields without the id that `show` has printed beside them. Throws if that is the id of another record, which the file is of then. */
export function fieldsFor(
  { idField, id, file }: ChangedRecord,
  { [idField]: written, ...fields }: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  // In YAML an id of digits is a number without quotes.
  if (written === undefined || written === null || String(written) === id) return fields;
  throw new CommandFault(
    'usage',
    `${file} is of another record: its ${idField} is ${written}. Without that field it changes ${id}.`,
  );
}

/** The value of a JSON or YAML file; `-` is standard input. Null if it is empty. */
export async function readValue(path: string): Promise<unknown> {
  const text = await readText(path);
  // The import takes a fifth of the start time, and few commands read files.
  const { InvalidYaml, parseYaml } = await import('../../platform/text/yaml.ts');
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof InvalidYaml)) throw error;
    const lines = error.faults.map((fault) => `  - ${fault}`);
    throw new CommandFault('usage', [`${path} is neither valid JSON nor valid YAML:`, ...lines].join('\n'), {
      cause: error,
    });
  }
}

/** The text of a file; `-` is standard input. */
export async function readText(path: string): Promise<string> {
  const text = decodeUtf8(await bytesOf(path));
  if (text === undefined) throw new CommandFault('usage', `${path} is not UTF-8.`);
  return text;
}

async function bytesOf(path: string): Promise<Buffer> {
  try {
    return path === '-' ? await buffer(process.stdin) : await readFile(path);
  } catch (error) {
    throw new CommandFault('usage', `${path} can not be read (${systemCodeOf(error)}).`, { cause: error });
  }
}
