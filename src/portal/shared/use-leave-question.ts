import { useEffect } from 'preact/hooks';

/** Lets the browser ask before it reloads or leaves the page, while `isOn`. Browsers on iPhones don't ask: there it only stops the pull that reloads. */
export function useLeaveQuestion(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    const { style } = document.documentElement;
    window.addEventListener('beforeunload', ask);
    style.overscrollBehaviorY = 'none';
    return () => {
      window.removeEventListener('beforeunload', ask);
      style.overscrollBehaviorY = '';
    };
  }, [isOn]);
}
