/**
 * An object as a block of YAML, each line after `indent` blanks. Texts that could be read as something else are in double quotes, with the
 * characters that could control a terminal escaped. The library would take twenty times as long, which counts for a hundred thousand keys.
 */
export function yamlBlock(value: object, indent = 0): string {
  const blanks = ' '.repeat(indent);
  let text = '';
  for (const [name, inner] of Object.entries(value)) {
    const key = scalar(name);
    // A longer key needs the explicit form (YAML 1.2, section 8.2.2).
    const start = key.length > LONGEST_KEY ? `${blanks}? ${key}\n${blanks}:` : `${blanks}${key}:`;
    text += start + yamlAfterKey(inner, indent);
  }
  return text;
}

/** The entries of a list of objects, each line after `indent` blanks. */
export function yamlEntries(values: readonly unknown[], indent: number): string {
  const dash = `${' '.repeat(indent)}- `;
  return values
    .map((value) =>
      isFilledObject(value)
        ? dash + yamlBlock(value, dash.length).slice(dash.length)
        : `${dash}${Array.isArray(value) ? flow(value) : scalar(value)}\n`,
    )
    .join('');
}

const LONGEST_KEY = 500;

function yamlAfterKey(value: unknown, indent: number): string {
  if (Array.isArray(value)) return value.length === 0 ? ' []\n' : `\n${yamlEntries(value, indent + 2)}`;
  return isFilledObject(value) ? `\n${yamlBlock(value, indent + 2)}` : ` ${scalar(value)}\n`;
}

function isFilledObject(value: unknown): value is object {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
  );
}

const PLAIN = /^[A-Za-z_](?:[\w ./@-]*[\w/@-])?$/;
/** What versions of YAML take for something else than a text. */
const WORDS = /^(?:true|false|yes|no|on|off|y|n|null)$/i;

function scalar(value: unknown): string {
  return typeof value === 'string' && PLAIN.test(value) && !WORDS.test(value) ? value : flow(value);
}

/** Characters that YAML or a terminal could take for something else, and that `JSON.stringify` leaves as they are. */
const SPECIAL = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** JSON is valid YAML; only a text can have special characters. */
function flow(value: unknown): string {
  return JSON.stringify(value).replace(
    SPECIAL,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
