import type { Finding } from '../../app/diagnosis/finding.ts';
import { systemClock } from '../../platform/clock.ts';
import { systemRandom } from '../../platform/random.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';
import type { Listing } from '../output/columns.ts';
import { Output, type OutputOptions, writesData } from '../output/output.ts';
import { shownCell } from '../output/table.ts';

export const declareDoctor: Declare = (command, terminal) =>
  void writesData(
    command
      .description(
        'Looks at an installation from where its gateway runs, with the same environment: settings, CONFIG_FILE, Postgres and its migrations, ENCRYPTION_KEY, Redis, the backend and the versions of the replicas; and says what to do for each thing that is not as it should be. Changes nothing. Exit code 0 where nothing must be done, 75 where a store does not respond, else 1.',
      )
      .addHelpText(
        'after',
        `
Examples:
  tollgate doctor
  docker compose run --rm gateway tollgate doctor
  tollgate doctor -o json | jq -r '.[] | select(.status != "ok") | .finding + " " + .remedy'`,
      ),
  ).action(async (options: OutputOptions) => {
    const [{ diagnose }, { createLogger }] = await Promise.all([
      import('../../app/diagnosis/diagnose.ts'),
      import('../../platform/logger.ts'),
    ]);
    const log = createLogger('silent');
    const findings = await diagnose(terminal.environment, { clock: systemClock, random: systemRandom, log });
    const output = new Output(options, terminal);
    if (output.format === 'table') terminal.stdout.write(linesOf(findings));
    else await output.report(FINDINGS, findings, findings);
    const count = (status: Finding['status']) =>
      findings.filter((finding) => finding.status === status).length;
    const [faults, stores] = [count('fault'), count('unavailable')];
    output.note(`Faults: ${faults}. Stores that do not respond: ${stores}. Warnings: ${count('warning')}.`);
    if (stores > 0) throw new CommandFault('unavailable', 'Not everything could be looked at.');
    if (faults > 0) throw new CommandFault('fault', 'The gateway would not work as it should.');
  });

/** Prints whole sentences: the cells of a table would cut them off. */
function linesOf(findings: readonly Finding[]): string {
  return findings
    .map(({ check, status, finding, remedy }) => {
      const line = `${status.padEnd(11)}  ${check.padEnd(8)}  ${shownCell(finding)}\n`;
      return remedy === null ? line : `${line}${' '.repeat(23)}Do: ${shownCell(remedy)}\n`;
    })
    .join('');
}

const FINDINGS: Listing<Finding> = {
  columns: [
    { name: 'check', toCell: ({ check }) => check },
    { name: 'status', toCell: ({ status }) => status },
    { name: 'finding', toCell: ({ finding }) => finding },
    { name: 'remedy', toCell: ({ remedy }) => remedy },
  ],
  idOf: ({ check }) => check,
};
