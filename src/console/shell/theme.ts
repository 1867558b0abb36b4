import { siteStorage } from '../api/browser-storage.ts';

/** The theme that the reader chose; `system` follows the operating system. */
export type Theme = 'system' | 'light' | 'dark';

const STORAGE_KEY = 'tollgate.theme';

export function storedTheme(): Theme {
  const stored = siteStorage.getItem(STORAGE_KEY);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

/** Applies a theme, and remembers it for the next visit. */
export function applyTheme(theme: Theme): void {
  if (theme === 'system') {
    siteStorage.removeItem(STORAGE_KEY);
    delete document.documentElement.dataset.theme;
    return;
  }
  siteStorage.setItem(STORAGE_KEY, theme);
  document.documentElement.dataset.theme = theme;
}
