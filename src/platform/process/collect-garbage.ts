/**
 * Collects all garbage and returns unneeded heap memory to the system. Called when everything is loaded and no request waits yet: loading
 * grows the heap to twice the size that is needed afterwards, and V8 keeps the memory of an idle process for minutes. Does nothing if Node
 * has no inspector, or does not allow it.
 */
export async function collectGarbage(): Promise<void> {
  try {
    const { Session } = await import('node:inspector/promises');
    const session = new Session();
    session.connect();
    await session.post('HeapProfiler.collectGarbage');
    // Not in the callback of the response: there V8 holds a lock that a disconnect waits for.
    setImmediate(() => session.disconnect());
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ERR_INSPECTOR_NOT_AVAILABLE' && code !== 'ERR_ACCESS_DENIED') throw error;
  }
}
