import { isObject } from '../../../../platform/is-object.ts';
import { EXACT_NUMBER_RULE, inexactNumberIn } from '../../../../platform/text/exact-numbers.ts';
import { fieldName } from '../../../../platform/text/field-name.ts';
import { parsedJson } from '../../../../platform/text/parsed-json.ts';
import { CommandFault } from '../../../command-fault.ts';
import type { KeyToImport, Row } from './row.ts';

/** More than any key needs. */
const MAX_LINE_CHARACTERS = 1024 * 1024;

/**
 * The rows of JSON lines: each line is an object with the fields of the interface, where `secretHash` may be the digest alone. Blank
 * lines are skipped.
 */
export async function* jsonLineRows(chunks: AsyncIterable<string>): AsyncGenerator<Row> {
  let number = 0;
  for await (const line of linesOf(chunks)) {
    number += 1;
    const text = line.trim();
    if (text !== '') yield { number, text, content: contentOf(text) };
  }
}

async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > MAX_LINE_CHARACTERS)
      throw new CommandFault(
        'usage',
        'The file is not JSON lines: a line has more than 1 MiB. jq -c writes an object a line.',
      );
  }
  yield rest;
}

function contentOf(text: string): Row['content'] {
  const value = parsedJson(text);
  if (!isObject(value))
    return { fault: { code: 'invalid_row', field: null, message: 'must be a JSON object' } };
  const inexact = inexactNumberIn(text);
  if (inexact !== undefined)
    return { fault: { code: 'invalid_row', field: fieldName(inexact), message: EXACT_NUMBER_RULE } };
  const { secretHash } = value;
  const key =
    typeof secretHash === 'string'
      ? { ...value, secretHash: { algorithm: 'sha256', value: secretHash } }
      : value;
  return { key: key as KeyToImport };
}
