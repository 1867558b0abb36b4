/** The theme that the reader chose; `system` follows the operating system. */
export type Theme = 'system' | 'light' | 'dark';

const STORAGE_KEY = 'tollgate.theme';

export function storedTheme(): Theme {
  const stored = localStorage.getItem(STORAGE_KEY);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

/** Applies a theme, and remembers it for the next visit. */
export function applyTheme(theme: Theme): void {
  if (theme === 'system') {
    localStorage.removeItem(STORAGE_KEY);
    delete document.documentElement.dataset.theme;
    return;
  }
  localStorage.setItem(STORAGE_KEY, theme);
  document.documentElement.dataset.theme = theme;
}
