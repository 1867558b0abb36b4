import { readFile } from 'node:fs/promises';

/** A fenced block of a page, below the heading (`### Create a key`) that is nearest before it. */
export interface DocumentedBlock {
  readonly heading: string;
  /** `sh`, `json`, … */
  readonly language: string;
  readonly text: string;
}

/** The blocks of a page of docs/, in order. */
export async function documentedBlocks(page: string): Promise<readonly DocumentedBlock[]> {
  const guide = await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  let heading = '';
  const blocks: DocumentedBlock[] = [];
  for (const [match, language = '', text = ''] of guide.matchAll(/^#+ [^\n]*$|^```(\w+)\n(.*?)^```$/gms)) {
    if (match.startsWith('#')) heading = match;
    else blocks.push({ heading, language, text });
  }
  return blocks;
}
