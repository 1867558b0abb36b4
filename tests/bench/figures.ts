import { scriptCommand } from '../support/script-command.ts';
import { publishedResult, publishFigures } from './report/figures.ts';

scriptCommand(
  'bench:figures',
  'Writes the figures of the published run (docs/performance/bench.json) into the documents, as npm run bench -- --publish does after it.',
).parse();
await publishFigures(await publishedResult());
