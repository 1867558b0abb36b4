/** The parts of the process that a command uses. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  /** For data only. */
  readonly stdout: NodeJS.WriteStream;
  /** For everything that is not data: questions, notes, faults. */
  readonly stderr: NodeJS.WriteStream;
}
