import { useRef, useState } from 'react';
import { toast } from '../components/states/toast.tsx';
import { faultSentence } from './fault-kind.ts';

/** Makes one call at a time for a button. If it fails, `failure` is announced. */
export function useAnnouncedCall(failure: string) {
  const [isPending, setPending] = useState(false);
  const isRunning = useRef(false);
  const run = async (call: () => Promise<void>): Promise<void> => {
    // `isPending` would be too late for the second click of a double click.
    if (isRunning.current) return;
    isRunning.current = true;
    setPending(true);
    try {
      await call();
    } catch (error) {
      toast.failed(failure, faultSentence(error));
    } finally {
      isRunning.current = false;
      setPending(false);
    }
  };
  return { isPending, run };
}
