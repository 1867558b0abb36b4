import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** `npm run check:console`: the most that a browser may load before it shows the first page, compressed. */
const PAGES = [
  { name: 'The console', page: 'console/index.html', budgetBytes: 150 * 1024 },
  { name: 'The page of hand-over links', page: 'portal/handover.html', budgetBytes: 60 * 1024 },
  { name: 'The portal', page: 'portal/portal.html', budgetBytes: 60 * 1024 },
];

for (const { name, page, budgetBytes } of PAGES) {
  const directory = join(import.meta.dirname, '../../dist', page, '..');
  const path = join(import.meta.dirname, '../../dist', page);
  const files = firstFiles(directory, readFileSync(path, 'utf8'));
  const sizes = [path, ...files.map((file) => join(directory, file))].map(
    (file) => statSync(`${file}.br`).size,
  );
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  process.stdout.write(
    `${name}: first load ${inKb(bytes)} KB of ${inKb(budgetBytes)}: ${files.join(', ')}\n`,
  );
  if (bytes > budgetBytes) process.exitCode = 1;
}

/** The scripts and stylesheets that the page names, and what those scripts import before they run. */
function firstFiles(directory: string, html: string): readonly string[] {
  const found = new Set<string>();
  const named = [...html.matchAll(/(?:src|href)="(?:\/tollgate\/console|\.)\/([^"]+\.(?:js|css))"/g)].map(
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
