const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Does work that the first stop signal does not end, because its result would be lost: `onFirst` is called instead. With the next signal
 * `onNext` is called, which ends the process.
 */
export async function holdSignals<Result>(
  work: () => Promise<Result>,
  { onFirst, onNext }: { readonly onFirst: () => void; readonly onNext: () => never },
): Promise<Result> {
  let isHeld = false;
  const receive = (): void => {
    if (isHeld) onNext();
    isHeld = true;
    onFirst();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, receive);
  try {
    return await work();
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, receive);
  }
}
