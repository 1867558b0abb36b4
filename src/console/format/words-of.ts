/** The entries of a list that is typed into a text field, separated by blanks or commas. */
export function wordsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}
