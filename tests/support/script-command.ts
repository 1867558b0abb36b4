import { Command, InvalidArgumentError } from 'commander';

/**
 * The command line of an npm script: `--help` lists what it takes, and anything else that it does not know ends it with a sentence.
 * The caller adds arguments and options, then calls `parse`.
 */
export function scriptCommand(script: string, description: string): Command {
  return new Command(`npm run ${script} --`).description(description).helpOption('-h, --help', 'show this');
}

/** Reads an argument that is a whole number, `least` or more. */
export function wholeNumber(least = 0): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
      throw new InvalidArgumentError(`It must be a whole number, ${least} or more.`);
    return value;
  };
}

/** Reads an argument that is a number above 0, `most` or less. */
export function positiveNumber(most = Number.POSITIVE_INFINITY): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !(value > 0 && value <= most)) {
      const bound = most === Number.POSITIVE_INFINITY ? '' : `, and at most ${most}`;
      throw new InvalidArgumentError(`It must be a number above 0${bound}.`);
    }
    return value;
  };
}
