/**
 * Collects all garbage and gives memory that the heap does not need back to the system. To be called when everything is loaded and nothing
 * waits yet: loading grows the heap to twice of what is needed afterwards, and V8 keeps that of an idle process for minutes. Does nothing
 * where Node has no inspector, or may not use it.
 */
export async function collectGarbage(): Promise<void> {
  try {
    const { Session } = await import('node:inspector/promises');
    const session = new Session();
    session.connect();
    await session.post('HeapProfiler.collectGarbage');
    // Not in the callback of the response: V8 holds a lock there that a disconnect waits for.
    setImmediate(() => session.disconnect());
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ERR_INSPECTOR_NOT_AVAILABLE' && code !== 'ERR_ACCESS_DENIED') throw error;
  }
}
