import { readFile } from 'node:fs/promises';

/** The PromQL of the runbook: one query a line, without what is said behind it. */
export async function queriesOfRunbook(): Promise<readonly string[]> {
  const runbook = await readFile('docs/runbook.md', 'utf8');
  return [...runbook.matchAll(/^```promql\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/ +# .*$/, '')),
  );
}
