/** The system's code of an error, such as `ENOSPC`, for a message. */
export function systemCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}
