/** Settings or a configuration with faults, as in sysexits.h. */
export const EX_CONFIG = 78;
/** A signal ended the start, before anything was begun that would have to be finished: what a shell shows for SIGTERM. */
export const START_ENDED = 143;
/** The start failed, or a stop did not save all usage, or a second signal cut the stop short. */
export const FAILED = 1;
