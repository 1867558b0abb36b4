/** The instant in the form that the management interface accepts: UTC, without fractions. Takes milliseconds or a `Date`. */
export function instantText(at: number | Date): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
