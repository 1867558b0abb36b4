import { useEffect } from 'preact/hooks';

/** Lets the browser ask before it reloads or leaves the page, while `isOn`. */
export function useLeaveQuestion(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [isOn]);
}
