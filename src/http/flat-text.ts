/**
 * The same text as one flat string. V8 keeps a text that was put together as a tree of its parts, and walks it whenever a longer text with it
 * is written: what is used again and again is better flat. Only for characters up to U+00FF.
 */
export function flatText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
