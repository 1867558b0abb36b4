const CONTROL_CHARACTER = /\p{Cc}/u;

/** Whether Postgres can store a text: it has neither NUL nor unpaired surrogates. */
export function isStorable(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}

export function hasControlCharacter(text: string): boolean {
  return CONTROL_CHARACTER.test(text);
}

/** The length in code points: an emoji of one code point counts as one character. */
export function lengthOf(text: string): number {
  return [...text].length;
}
