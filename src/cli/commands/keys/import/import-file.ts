import { createReadStream } from 'node:fs';
import { systemRandom } from '../../../../platform/random.ts';
import type { Session } from '../../../api/session.ts';
import { CommandFault } from '../../../command-fault.ts';
import type { Listing } from '../../../output/columns.ts';
import { type Batch, batchesOf } from './batches.ts';
import { dryRun, planIds } from './dry-run.ts';
import { type ImportedBatch, importBatch } from './import-batch.ts';
import { rowsOf, surveyOf } from './key-file.ts';
import { RejectedFile } from './rejected-file.ts';
import type { RejectedRow, Row, RowFault } from './row.ts';

export interface ImportOptions {
  readonly onConflict: 'fail' | 'skip';
  readonly batchSize: number;
  readonly rejected?: string;
  readonly restart?: boolean;
  readonly dryRun?: boolean;
}

/** The results for the rows so far. */
interface ImportCounts {
  rows: number;
  made: number;
  skipped: number;
  readonly rejected: RejectedRow[];
  replayedBatches: number;
}

const STANDARD_INPUT = '-';

/** Imports the keys of a file, and writes which rows were rejected. Throws if there are any. */
export async function importFile(session: Session, path: string, options: ImportOptions): Promise<void> {
  const { batchSize } = options;
  // Standard input can't be read twice: its faults of form are found only during the import.
  const survey = path === STANDARD_INPUT ? undefined : await surveyOf(path);
  const file = options.rejected === undefined ? undefined : new RejectedFile(options.rejected);
  const counts: ImportCounts = { rows: 0, made: 0, skipped: 0, rejected: [], replayedBatches: 0 };
  try {
    const importRows = await importer(session, survey?.digest, options);
    const bytes = path === STANDARD_INPUT ? session.terminal.stdin : createReadStream(path);
    const rows = rowsOf(bytes, (header) => file?.beginWith(header));
    for await (const batch of batchesOf(rows, batchSize)) {
      for (const [row, fault] of count({ ...batch, ...(await importRows(batch)) }, options, counts)) {
        counts.rejected.push({ row: row.number, ...fault });
        file?.add(row);
      }
      session.output.progress(`${counts.rows}${survey === undefined ? '' : ` of ${survey.rows}`} rows`);
    }
  } catch (error) {
    file?.discard();
    const rerun = path === STANDARD_INPUT ? 'with --on-conflict skip ' : '';
    session.output.note(`${summaryOf(counts, options)} Run the command again ${rerun}to import the rest.`);
    throw error;
  }
  try {
    await report(session, counts, options);
  } finally {
    // Afterwards, so that the rejected rows are shown also where they are in no file.
    file?.finish();
  }
}

async function importer(
  { client }: Session,
  digest: string | undefined,
  { restart, dryRun: isDry }: ImportOptions,
): Promise<(batch: Batch) => Promise<ImportedBatch>> {
  if (isDry) {
    const check = dryRun(await planIds(client));
    return async ({ rows }) => check(rows);
  }
  const identity = digest === undefined || restart ? systemRandom.bytes(16).toString('hex') : digest;
  return ({ rows }) => importBatch(client, rows, identity);
}

/** Adds a batch to the counts. Returns the rows that were rejected, in their order. */
function count(
  { rows, faulty, made, isReplayed, faults }: Batch & ImportedBatch,
  { onConflict }: ImportOptions,
  counts: ImportCounts,
): readonly (readonly [Row, RowFault])[] {
  const found: (readonly [Row, RowFault])[] = [
    ...faulty.map((row) => [row, row.content.fault] as const),
    ...faults,
  ];
  const rejected = found.filter(([, { code }]) => onConflict === 'fail' || code !== 'secret_taken');
  counts.rows += rows.length + faulty.length;
  counts.made += made;
  counts.skipped += found.length - rejected.length;
  if (isReplayed) counts.replayedBatches += 1;
  return rejected.toSorted(([one], [other]) => one.number - other.number);
}

async function report({ output }: Session, counts: ImportCounts, options: ImportOptions): Promise<void> {
  const { rows, made, skipped, rejected, replayedBatches } = counts;
  output.endProgress();
  if (rejected.length > 0 || output.format !== 'table')
    await output.report(REJECTED, rejected, {
      ...(options.dryRun && { dryRun: true }),
      ...{ rows, made, skipped, rejected },
    });
  output.note(summaryOf(counts, options));
  if (replayedBatches > 0)
    output.note(
      `Of these, ${replayedBatches === 1 ? 'a batch was' : `${replayedBatches} batches were`} imported by an earlier run, whose result this is: --restart sends all again.`,
    );
  if (rejected.length === 0) return;
  const isConflict = rejected.every(({ code }) => code === 'secret_taken');
  throw new CommandFault(
    isConflict ? 'conflict' : 'fault',
    options.rejected === undefined
      ? 'Rejected rows were not imported.'
      : `Rejected rows were not imported. They are in ${options.rejected}.`,
  );
}

function summaryOf(
  { rows, made, skipped, rejected }: ImportCounts,
  { dryRun: isDry }: ImportOptions,
): string {
  const kept = isDry ? 'Dry run, nothing was made: ' : '';
  const outcome = `${made} ${isDry ? 'in order' : 'made'}, ${skipped} skipped, ${rejected.length} rejected`;
  return `${kept}${rows} rows: ${outcome}.`;
}

const REJECTED: Listing<RejectedRow> = {
  columns: [
    { name: 'row', toCell: ({ row }) => row },
    { name: 'code', toCell: ({ code }) => code },
    { name: 'field', toCell: ({ field }) => field },
    { name: 'message', toCell: ({ message }) => message },
  ],
  idOf: ({ row }) => String(row),
  isWhole: true,
};
