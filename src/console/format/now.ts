/** The time of this computer, in milliseconds. The whole console reads the time here. */
export function now(): number {
  return Date.now();
}
