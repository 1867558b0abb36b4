/** The exit codes of the gateway and of its commands. Those from 64 to 78 are from sysexits.h. */
export const EXIT_CODES = {
  /** Of the gateway too: the start failed, or a stop did not save all usage, or a second signal cut the stop short. */
  fault: 1,
  differences: 2,
  credentials: 3,
  notFound: 4,
  conflict: 5,
  notAllowed: 6,
  usage: 64,
  unavailable: 75,
  /** Settings or a configuration with faults. */
  configuration: 78,
  /** A signal ended the start, before anything was begun that would have to be finished: what a shell shows for SIGTERM. */
  startEnded: 143,
} as const;
