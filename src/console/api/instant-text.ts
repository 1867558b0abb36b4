/** The instant as the management interface takes it: UTC, without fractions. Milliseconds, or whatever `Date` reads. */
export function instantText(at: number | Date): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
