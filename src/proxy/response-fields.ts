import { type AnswerHead, fieldValue } from './answer-head.ts';
import type { AnswerName } from './answer-names.ts';
import type { Exchange } from './exchange.ts';
import { fieldsNamedBy } from './hop-by-hop.ts';

/** The fields of an answer to the client: as lines, and as a flat list those that decide how it is written. */
export interface ResponseFields {
  readonly lines: string;
  readonly decisive: string[];
}

/** The fields of the answer to the client, in one pass over the backend's: case, order and repetition kept, then ours. */
export function responseFields(head: AnswerHead, exchange: Exchange): ResponseFields {
  const { names } = head;
  const named = fieldsNamedBy(head.connection);
  const decisive: string[] = [];
  let lines = '';
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (name === undefined || isDropped(name, head, named, exchange.isOriginAllowed)) continue;
    const line = head.lines[i] ?? '';
    if (name.isDecisive) decisive.push(name.text, fieldValue(name, line));
    else lines += line;
  }
  return { lines: lines + exchange.ownLines(), decisive };
}

/** The fields of an interim answer, a flat list: only what is not bound to this hop. */
export function interimFields(head: AnswerHead): string[] {
  const named = fieldsNamedBy(head.connection);
  return head.names.flatMap((name, i) =>
    isDropped(name, head, named, false) ? [] : [name.text, fieldValue(name, head.lines[i] ?? '')],
  );
}

/** Ours to write, or named by `Connection`, or a length where there is none (RFC 9110 section 8.6). */
function isDropped(
  name: AnswerName,
  { status }: AnswerHead,
  named: ReadonlySet<string> | undefined,
  isCorsOurs: boolean,
): boolean {
  return (
    name.isReplaced ||
    (name.isCors && isCorsOurs) ||
    (name.framing === 'content-length' && (status < 200 || status === 204)) ||
    named?.has(name.lowerCase) === true
  );
}
