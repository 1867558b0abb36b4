import { type ReactNode, useEffect } from 'react';
import { Link } from 'wouter';
import styles from './page-header.module.css';

interface PageHeaderProps {
  readonly title: string;
  /** Shown beside the title: for example a status. */
  readonly badge?: ReactNode;
  /** One line below the title. */
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  /** The list that this page belongs to. */
  readonly back?: { readonly href: string; readonly label: string };
}

/** The head of each page. It also sets the title of the tab. */
export function PageHeader({ title, badge, about, actions, back }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} · Tollgate`;
  }, [title]);
  return (
    <header className={styles.header}>
      <div className={styles.title}>
        {back !== undefined && (
          <Link className={styles.back} href={back.href}>
            ← {back.label}
          </Link>
        )}
        <h1>
          <bdi>{title}</bdi> {badge}
        </h1>
        {about !== undefined && <div className={styles.about}>{about}</div>}
      </div>
      {actions !== undefined && <div className={styles.actions}>{actions}</div>}
    </header>
  );
}
