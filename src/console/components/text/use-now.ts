import { useEffect, useState } from 'react';
import { now } from '../../format/now.ts';

const TICK_MS = 10_000;

/** The time in milliseconds. The component renders again every 10 s. */
export function useNow(): number {
  const [time, setTime] = useState(now);
  useEffect(() => {
    const timer = setInterval(() => setTime(now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return time;
}
