import {
  type Document,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  visit,
} from 'yaml';
import { EXACT_NUMBER_RULE, isExactNumber } from './exact-numbers.ts';
import { fieldName } from './field-name.ts';

/** A text that is not valid YAML. `faults` has one line for each fault, up to a bound, with its place and no content of the text but names of fields. */
export class InvalidYaml extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super('The text is not valid YAML.');
    this.name = 'InvalidYaml';
    this.faults = faults.slice(0, MAX_FAULTS);
  }
}

/** One wrong character can cause many faults. */
const MAX_FAULTS = 20;

/**
 * The value of a document in YAML, and so of JSON, which is valid YAML; but a member that is there twice is a fault. Null if the text is
 * empty. Throws `InvalidYaml`.
 */
export function parseYaml(text: string): unknown {
  const lineCounter = new LineCounter();
  // Pretty errors would quote the file.
  const document = parseDocument(text, { lineCounter, prettyErrors: false, merge: true });
  // An unknown tag is a warning: its node would be read as if it had none.
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    throw new InvalidYaml(
      faults.map(({ code, message, pos: [start] }) => {
        const { line, col } = lineCounter.linePos(start);
        return `line ${line}, column ${col}: ${SENTENCES[code] ?? message}`;
      }),
    );
  }
  const inexact = inexactNumbers(document, lineCounter);
  if (inexact.length > 0) throw new InvalidYaml(inexact);
  try {
    // The value is as the API would get it in JSON: no infinity, and a copy for each alias.
    return JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: MAX_ALIASES }) ?? null));
  } catch (error) {
    throw new InvalidYaml([aliasFault(error)]);
  }
}

/** What the aliases and merges of a document have wrong, by what the library throws then. Throws any other error. */
function aliasFault(error: unknown): string {
  if (error instanceof ReferenceError)
    return /Excessive/.test(error.message)
      ? `its aliases stand for too much: for ${MAX_ALIASES} copies of an anchor at most, and nested ones multiply`
      : 'an alias stands for nothing that is before it';
  // JSON rejects the cycle of an alias inside of its anchor.
  if (error instanceof TypeError) return 'its aliases stand for what holds the aliases themselves';
  // Calls that are too deep, or a text that is too long.
  if (error instanceof RangeError) return 'its aliases stand for too much';
  if (error instanceof Error && /^Merge sources/.test(error.message)) return 'a merge (<<) takes maps alone';
  throw error;
}

/** In place of the library's sentences, which may have content of the text. */
const SENTENCES: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'The file has more than one document',
  TAG_RESOLVE_FAILED: 'The tag is not known; a text that begins with ! needs quotes',
};

/** A fault for each number that would become another value: too large, with too many digits, infinite, or none at all. */
function inexactNumbers(document: Document.Parsed, lineCounter: LineCounter): readonly string[] {
  const faults: string[] = [];
  visit(document, {
    Scalar: (_key, node, ancestors) => {
      if (isHeld(node)) return undefined;
      const { line, col } = lineCounter.linePos(node.range?.[0] ?? 0);
      const field = fieldName(pathTo([...ancestors, node]));
      faults.push(`line ${line}, column ${col}: ${field || 'the number'}: ${EXACT_NUMBER_RULE}`);
      return faults.length === MAX_FAULTS ? visit.BREAK : undefined;
    },
  });
  return faults;
}

/** The names and indexes on the way through nodes, each within the one before. */
function pathTo(nodes: readonly (Document | Node | Pair)[]): readonly string[] {
  return nodes.flatMap((node, index) => {
    const next = nodes[index + 1];
    if (isPair(node)) return isScalar(node.key) ? [String(node.key.value)] : [];
    return isSeq(node) ? [String(node.items.indexOf(next))] : [];
  });
}

/** Numbers in the notations of YAML that JSON has not. */
const OTHER_BASE = /^0[xo]/;

function isHeld({ value, source }: Scalar): boolean {
  if (typeof value !== 'number') return true;
  if (!Number.isFinite(value) || source === undefined) return false;
  return OTHER_BASE.test(source) ? BigInt(source) === BigInt(value) : isExactNumber(source);
}

/** The most alias expansions in a file: without a limit, a few lines of aliases could fill the memory. */
const MAX_ALIASES = 10_000;
