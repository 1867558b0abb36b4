/** The exit codes of the process by kind of fault. Those from 64 on are from sysexits.h. */
export const EXIT_CODES = {
  fault: 1,
  differences: 2,
  credentials: 3,
  notFound: 4,
  conflict: 5,
  notAllowed: 6,
  usage: 64,
  unavailable: 75,
} as const;

/** Ends a command: the message is for the person at the terminal. */
export class CommandFault extends Error {
  readonly exitCode: number;

  constructor(kind: keyof typeof EXIT_CODES, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CommandFault';
    this.exitCode = EXIT_CODES[kind];
  }
}

/** The system's code of an error, such as `ENOSPC`, for a message. */
export function systemCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}
