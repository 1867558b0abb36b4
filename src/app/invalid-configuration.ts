import type { InvalidBody } from '../errors.ts';

/** A text that is not a valid configuration. `faults` has one line for each fault, with its path or place in the file, and no secret. */
export class InvalidConfiguration extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `The configuration has ${faults.length} fault(s):\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.name = 'InvalidConfiguration';
    this.faults = faults;
  }
}

/** The faults of a configuration by their paths in the file. */
export function faultsInFile({ faults }: InvalidBody): readonly string[] {
  return faults.map(({ field, message }) => `${field === 'body' ? 'the file' : field}: ${message}`);
}
