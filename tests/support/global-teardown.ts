import './global-setup.ts';

/** Ends what the setup started, and nothing else. */
export default async function tearDown(): Promise<void> {
  const ended = await Promise.allSettled((globalThis.tollgateTestStores ?? []).map((store) => store.stop()));
  for (const outcome of ended) {
    if (outcome.status === 'rejected') {
      throw outcome.reason;
    }
  }
}
