import { LineCounter, parseDocument } from 'yaml';

/** A text that is not valid YAML. `faults` has one line for each fault, up to a bound, with its place and no content of the text. */
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
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  if (document.errors.length > 0) {
    throw new InvalidYaml(
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
    throw new InvalidYaml([
      `its aliases stand for too much (${MAX_ALIASES} at most), for nothing, or for themselves`,
    ]);
  }
}

/** The most alias expansions in a file: without a limit, a few lines of aliases could fill the memory. */
const MAX_ALIASES = 100;
