/**
 * The same text as one flat string. V8 keeps a concatenated string as a tree of its parts, and walks the tree whenever a longer string
 * with it is written, so a string that is used often should be flat. Only for characters up to U+00FF.
 */
export function flatText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
