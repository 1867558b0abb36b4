import type { ReactNode } from 'react';
import styles from './panels.module.css';

/** Panels below each other. */
export function PanelStack({ children }: { readonly children: ReactNode }) {
  return <div className={styles.stack}>{children}</div>;
}

/** Panels side by side, where there is room. */
export function PanelGrid({ children }: { readonly children: ReactNode }) {
  return <div className={styles.grid}>{children}</div>;
}
