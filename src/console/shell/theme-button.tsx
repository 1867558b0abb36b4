import { Monitor, Moon, Sun } from 'lucide-react';
import { useState } from 'react';
import styles from './shell.module.css';
import { applyTheme, storedTheme, type Theme } from './theme.ts';

const THEMES: Readonly<
  Record<Theme, { readonly label: string; readonly icon: typeof Sun; readonly next: Theme }>
> = {
  system: { label: 'System theme', icon: Monitor, next: 'light' },
  light: { label: 'Light theme', icon: Sun, next: 'dark' },
  dark: { label: 'Dark theme', icon: Moon, next: 'system' },
};

/** Switches between the themes: the system's, light, dark. */
export function ThemeButton() {
  const [theme, setTheme] = useState(storedTheme);
  const { label, icon: Icon, next } = THEMES[theme];
  const change = () => {
    applyTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" className={styles.link} onClick={change} title={label}>
      <Icon aria-hidden="true" />
      <span className={styles.word}>{label}</span>
    </button>
  );
}
