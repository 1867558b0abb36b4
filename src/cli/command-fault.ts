import { EXIT_CODES } from './exit-codes.ts';

/** Ends a command: the message is for the person at the terminal. */
export class CommandFault extends Error {
  readonly exitCode: number;

  constructor(kind: keyof typeof EXIT_CODES, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CommandFault';
    this.exitCode = EXIT_CODES[kind];
  }
}
