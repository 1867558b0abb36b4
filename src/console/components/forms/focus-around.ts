/**
 * The ref of a button that may go away while it has the focus, such as one that tries again: the dialog or the page around it gets the focus
 * then. React calls it before it removes the button.
 */
export function focusAround(button: HTMLElement | null): () => void {
  return () => {
    if (button === null || button !== document.activeElement) return;
    button.closest<HTMLElement>('[role="dialog"], main')?.focus({ preventScroll: true });
  };
}
