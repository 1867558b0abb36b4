/**
 * Something outside the program keeps it from starting: a port, a file, another process. The message is one or two sentences for
 * the operator: they say what to do and hold no secret.
 */
export class StartFault extends Error {}
