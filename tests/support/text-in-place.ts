/** A page with a text between the two marks of its place, `<!-- name -->` and `<!-- /name -->`. Throws for a page that has no such place. */
export function withTextInPlace(page: string, name: string, text: string): string {
  // The first mark may also say what writes the text.
  const place = new RegExp(`(<!-- ${name}(?:: [^>]*)? -->\\n)[^]*(<!-- /${name} -->)`);
  if (!place.test(page)) throw new Error(`The page has no place for ${name}.`);
  return page.replace(place, (_, begin: string, end: string) => `${begin}\n${text.trim()}\n\n${end}`);
}
