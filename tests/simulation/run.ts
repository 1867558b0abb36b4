import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { scriptCommand } from '../support/script-command.ts';
import { arithmetic } from './arithmetic.ts';
import { plots, tables } from './report.ts';

const NOTE = resolve(import.meta.dirname, '../../docs/notes/internet-scale.md');
const FOLDER = resolve(import.meta.dirname, '../../docs/notes/internet-scale');

scriptCommand(
  'simulate',
  'Plays one limit that three regions share, in simulated time, and writes the tables and plots of docs/notes/internet-scale.md. Always gives the same.',
).parse();

const parts: Readonly<Record<string, string>> = { arithmetic: await arithmetic(), simulation: tables() };
let note = await readFile(NOTE, 'utf8');
for (const [name, text] of Object.entries(parts)) {
  const place = new RegExp(`(<!-- ${name}: written by npm run simulate -->\n)[^]*(<!-- /${name} -->)`);
  note = note.replace(place, (_, begin: string, end: string) => `${begin}\n${text.trim()}\n\n${end}`);
}
await writeFile(NOTE, note);
await mkdir(FOLDER, { recursive: true });
for (const [name, svg] of Object.entries(plots())) await writeFile(join(FOLDER, `${name}.svg`), `${svg}\n`);
