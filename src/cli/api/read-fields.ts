import { readObject } from './read-object.ts';

/** The object in a file without its `readOnly` fields: those that `show` prints, and that no change takes. */
export async function readFields(
  file: string | undefined,
  readOnly: readonly string[],
): Promise<Record<string, unknown>> {
  if (file === undefined) return {};
  const fields = Object.entries(await readObject(file));
  return Object.fromEntries(fields.filter(([name]) => !readOnly.includes(name)));
}
