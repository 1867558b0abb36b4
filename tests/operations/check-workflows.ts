import { globSync } from 'node:fs';
import { actionlint } from './actionlint.ts';

/** `npm run check:workflows`: actionlint finds nothing in the workflows. Says so where it could not be run. */
const files = globSync('.github/workflows/*.yml');
const verdict = await actionlint(files);
if ('leftOut' in verdict) {
  process.stdout.write(`actionlint was left out: ${verdict.leftOut}\n`);
} else {
  process.stdout.write(
    verdict.faults.length === 0 ? `${files.length} workflows are valid\n` : `${verdict.faults.join('\n')}\n`,
  );
  process.exitCode = verdict.faults.length === 0 ? 0 : 1;
}
