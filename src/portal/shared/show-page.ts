import { type ComponentChild, render } from 'preact';

/**
 * Shows a page. A browser may keep a page that was left, with the secret in its memory, and show it again: so nothing of it stays when it is
 * left, and it is loaded when it comes back.
 */
export function showPage(page: ComponentChild): void {
  const root = document.getElementById('root');
  if (root === null) return;
  render(page, root);
  window.addEventListener('pagehide', () => render(null, root));
  window.addEventListener('pageshow', ({ persisted }) => {
    if (persisted) location.reload();
  });
}
