import { useSyncExternalStore } from 'react';

const QUERY = '(max-width: 900px)';

/** True where the window is narrow, or zoomed in. */
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => matchMedia(QUERY).matches);
}

function subscribe(listener: () => void): () => void {
  const query = matchMedia(QUERY);
  query.addEventListener('change', listener);
  return () => query.removeEventListener('change', listener);
}
