import { readFile } from 'node:fs/promises';

/** The commands that a page of docs/ has under a heading (`### Provision a customer`), one text for each block, in order. */
export async function documentedCommands(heading: string, page = 'api.md'): Promise<readonly string[]> {
  const guide = await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  const start = guide.indexOf(`\n${heading}\n`);
  if (start === -1) throw new Error(`docs/${page} has no heading "${heading}"`);
  const section = guide.slice(start + heading.length + 1);
  const level = heading.indexOf(' ');
  const end = section.search(new RegExp(`\n#{1,${level}} `));
  return [...section.slice(0, end).matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block);
}
