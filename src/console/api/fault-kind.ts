import { ManagementFault } from '../../client/management-fault.ts';

/**
 * The meaning of a failed call for the page. `unavailable`: the gateway or a store does not respond, for now. `no-scope`: the token lacks a
 * scope. `conflict`: the record was changed in the meantime (412). `rejected`: the request itself is wrong.
 */
export type FaultKind = 'unavailable' | 'no-scope' | 'unauthorized' | 'not-found' | 'conflict' | 'rejected';

export function faultKind(error: unknown): FaultKind {
  // There was no response: the network failed, or the gateway has stopped.
  if (!(error instanceof ManagementFault)) return 'unavailable';
  if (error.status >= 500 || error.status === 429 || error.status === 408) return 'unavailable';
  if (error.status === 401) return 'unauthorized';
  if (error.status === 403) return 'no-scope';
  if (error.status === 404) return 'not-found';
  if (error.status === 412) return 'conflict';
  return 'rejected';
}

/** One sentence for the person at the console. */
export function faultSentence(error: unknown): string {
  if (error instanceof ManagementFault) return error.message;
  return 'The gateway does not respond. What you typed is kept; try again.';
}

/** The scope that a 403 names. */
export function requiredScope(error: unknown): string | undefined {
  const scope = error instanceof ManagementFault ? error.details.requiredScope : undefined;
  return typeof scope === 'string' ? scope : undefined;
}

/** The message for one field of a form, such as `limit` or `limits[0].period`. */
export function fieldMessage(error: unknown, field: string): string | undefined {
  if (!(error instanceof ManagementFault)) return undefined;
  return error.fields.find((fault) => fault.field === field)?.message;
}

/** What is wrong with a field, or with an entry in it. */
export function faultIn(error: unknown, field: string): ManagementFault['fields'][number] | undefined {
  if (!(error instanceof ManagementFault)) return undefined;
  return error.fields.find(
    (each) =>
      each.field === field || each.field.startsWith(`${field}[`) || each.field.startsWith(`${field}.`),
  );
}

/** The same as a sentence: "It must be …." or "Entry 2 must be ….". */
export function fieldSentence(error: unknown, field: string): string | undefined {
  const fault = faultIn(error, field);
  if (fault === undefined) return undefined;
  // Some are whole sentences.
  if (/^[A-Z]/.test(fault.message)) return fault.message;
  const entry = fault.field === field ? 'It' : entryName(fault.field, field);
  return `${entry} ${fault.message}.`;
}

/** "Entry 2" of `onlyTags[1]`, or "host" of `headers.host`. */
function entryName(path: string, field: string): string {
  const index = /^\[(\d+)\]/.exec(path.slice(field.length))?.[1];
  return index === undefined ? path.slice(field.length + 1) : `Entry ${Number(index) + 1}`;
}
