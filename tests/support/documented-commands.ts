import { readFile } from 'node:fs/promises';

/** A fenced block of a page. */
export interface DocumentedBlock {
  /** Those that it is below, the outermost first: `## Consumer API keys`, `### Create a key`. */
  readonly headings: readonly string[];
  /** `sh`, `json`, … */
  readonly language: string;
  readonly text: string;
}

/** The commands that a page of docs/ has under a heading (`### Provision a customer`), one text for each block, in order. */
export async function documentedCommands(heading: string, page = 'api.md'): Promise<readonly string[]> {
  const blocks = (await documentedBlocks(page)).filter(({ headings }) => headings.includes(heading));
  if (blocks.length === 0) throw new Error(`docs/${page} has nothing to run below "${heading}"`);
  return blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
}

/** The blocks of a page of docs/, in order. */
export async function documentedBlocks(page: string): Promise<readonly DocumentedBlock[]> {
  const guide = await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  let headings: readonly string[] = [];
  const blocks: DocumentedBlock[] = [];
  for (const [match, language = '', text = ''] of guide.matchAll(/^#+ [^\n]*$|^```(\w+)\n(.*?)^```$/gms)) {
    if (match.startsWith('#')) {
      headings = [...headings.filter((outer) => levelOf(outer) < levelOf(match)), match];
    } else {
      blocks.push({ headings, language, text });
    }
  }
  return blocks;
}

function levelOf(heading: string): number {
  return heading.indexOf(' ');
}
