/** The time of this computer, in milliseconds. All of the console reads it here. */
export function now(): number {
  return Date.now();
}
