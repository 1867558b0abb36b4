import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const BUDGET_BYTES = 150 * 1024;
const directory = join(import.meta.dirname, '../../dist/console');

/** `npm run check:console`: what a browser loads before it shows the first page may weigh at most 150 KB, compressed. */
const page = readFileSync(join(directory, 'index.html'), 'utf8');
const files = ['index.html', ...firstFiles(page)];
const bytes = files.reduce((sum, file) => sum + statSync(join(directory, `${file}.br`)).size, 0);

process.stdout.write(
  `The console's first load is ${inKb(bytes)} KB of ${inKb(BUDGET_BYTES)}: ${files.join(', ')}\n`,
);
if (bytes > BUDGET_BYTES) process.exitCode = 1;

/** The scripts and stylesheets that the page names, and what those scripts import before they run. */
function firstFiles(html: string): readonly string[] {
  const found = new Set<string>();
  const named = [...html.matchAll(/(?:src|href)="\/tollgate\/console\/([^"]+\.(?:js|css))"/g)].map(
    ([, file = '']) => file,
  );
  if (named.length === 0) throw new Error('the page names no script: has its form changed?');
  const follow = (file: string) => {
    if (found.has(file)) return;
    found.add(file);
    if (!file.endsWith('.js')) return;
    const script = readFileSync(join(directory, file), 'utf8');
    for (const [, name = ''] of script.matchAll(
      /(?:^|;|})import(?:[^'"`();]*from)?\s*["'`]\.\/([^"'`]+)["'`]/g,
    ))
      follow(`assets/${name}`);
  };
  for (const file of named) follow(file);
  return [...found];
}

function inKb(size: number): string {
  return (size / 1024).toFixed(1);
}
