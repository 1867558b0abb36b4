/** What a command works with of the process that runs it. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  /** Data, and nothing else. */
  readonly stdout: NodeJS.WriteStream;
  /** All that is not data: questions, notes, faults. */
  readonly stderr: NodeJS.WriteStream;
}
