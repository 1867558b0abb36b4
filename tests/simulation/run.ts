import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Argument } from 'commander';
import { scriptCommand, wholeNumber } from '../support/script-command.ts';
import { withTextInPlace } from '../support/text-in-place.ts';
import { arithmetic } from './arithmetic.ts';
import { plots, tables } from './report.ts';
import { runWeek, type WeekSize } from './week/run-week.ts';

const NOTE = resolve(import.meta.dirname, '../../docs/notes/internet-scale.md');
const FOLDER = resolve(import.meta.dirname, '../../docs/notes/internet-scale');

const command = scriptCommand(
  'simulate',
  "Plays one limit that three regions share, in simulated time, and writes the tables and plots of docs/notes/internet-scale.md; always gives the same. Or plays a week of usage with real stores: faults, a month's end and an upgrade, and compares what is stored with what was sent.",
)
  .addArgument(new Argument('[what]', 'what is played').choices(['regions', 'week']).default('regions'))
  .option('--keys <number>', 'keys of the week', wholeNumber(1), 1_000_000)
  .option('--requests <number>', 'requests of the week', wholeNumber(1), 500_000)
  .parse();
if (command.processedArgs[0] === 'week') process.exitCode = (await runWeek(command.opts<WeekSize>())) ? 0 : 1;
else await writeNote();

async function writeNote(): Promise<void> {
  const parts: Readonly<Record<string, string>> = { arithmetic: await arithmetic(), simulation: tables() };
  let note = await readFile(NOTE, 'utf8');
  for (const [name, text] of Object.entries(parts)) note = withTextInPlace(note, name, text);
  await writeFile(NOTE, note);
  await mkdir(FOLDER, { recursive: true });
  for (const [name, svg] of Object.entries(plots())) await writeFile(join(FOLDER, `${name}.svg`), `${svg}\n`);
}
