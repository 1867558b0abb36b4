import { Option } from 'commander';
import { audited, managed } from '../../api/session.ts';
import type { Declare } from '../../declare.ts';
import { wholeNumberFrom } from '../../option-values.ts';
import { MAX_BATCH_ROWS } from './import/batches.ts';
import type { ImportOptions } from './import/import-file.ts';

export const declareImport: Declare = (keys, terminal) => {
  const command = keys
    .command('import')
    .summary('Make keys with the secrets that their owners have already')
    .description(
      'Makes a key of each row of a file: CSV with a header, or JSON lines. A row has a name, and the secret or its SHA-256 digest, so that consumers keep their keys. A row that is rejected keeps no other from being imported. An import that was cut off goes on where it was when it is run again.',
    )
    .argument('<file>', 'the rows; - for standard input')
    .addOption(
      new Option('--on-conflict <what>', 'whether a row whose secret is taken is a fault, or is left out')
        .choices(['fail', 'skip'])
        .default('fail'),
    )
    .option('--rejected <path>', 'write the rows that were rejected to a new file of mode 600')
    .option(
      '--batch-size <rows>',
      `rows of a request, 1 to ${MAX_BATCH_ROWS}`,
      wholeNumberFrom(1, MAX_BATCH_ROWS),
      MAX_BATCH_ROWS,
    )
    .option('--restart', 'send also what a run of the last 24 hours has imported already')
    .option('--dry-run', 'check the rows, and that plans exist, and make nothing')
    .addHelpText(
      'after',
      `
The columns of CSV, and the members of a JSON line: name, secret or secretHash, rateLimitId, enabled,
expiresAt, externalId, tags, metadata, overrides, allowedIps, allowedOrigins, selfService. In CSV an empty
cell is left out; lists have blanks or commas between their parts, metadata and overrides are JSON.

Shows the rows that were rejected, with their number (in CSV the header is row 1). Exit code 0 where there
are none, 5 where all of them have a secret that is taken, else 1.

Examples:
  tollgate keys import keys.csv --dry-run
  tollgate keys import keys.csv --rejected rejected.csv --reason "moved from the old gateway"
  jq -c '.keys[] | {name, secret: .token}' old.json | tollgate keys import - --on-conflict skip`,
    );
  managed<ImportOptions>(audited(command), terminal, async (session, [file = ''], options) => {
    const { importFile } = await import('./import/import-file.ts');
    await importFile(session, file, options);
  });
};
