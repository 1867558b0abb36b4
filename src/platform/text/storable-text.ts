const CONTROL_CHARACTER = /\p{Cc}/u;

/** Whether Postgres can store a text as it is: it has neither NUL nor half a surrogate pair. */
export function isStorable(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}

export function hasControlCharacter(text: string): boolean {
  return CONTROL_CHARACTER.test(text);
}

/** Length in code points, so that an emoji counts as one character. */
export function lengthOf(text: string): number {
  return [...text].length;
}
