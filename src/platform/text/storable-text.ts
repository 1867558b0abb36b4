const CONTROL_CHARACTER = /\p{Cc}/u;

/** Whether Postgres can store a text: it has neither NUL nor unpaired surrogates. */
export function isStorable(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}

export function hasControlCharacter(text: string): boolean {
  return CONTROL_CHARACTER.test(text);
}

const BIDI_CONTROL = /[\u202a-\u202e\u2066-\u2069]/;

/** Whether a text has embeddings, overrides or isolates of direction, which make it, and what follows it, look like another text. */
export function hasBidiControl(text: string): boolean {
  return BIDI_CONTROL.test(text);
}

/** The length in code points: an emoji of one code point counts as one character. */
export function lengthOf(text: string): number {
  return [...text].length;
}
