import type { ReactNode } from 'react';
import type { Live } from '../../api/live.ts';
import { Panel } from '../../components/layout/panel.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { Skeleton } from '../../components/states/skeleton.tsx';
import { KeyName } from '../../components/text/key-name.tsx';
import styles from './overview.module.css';

export interface KeyLine {
  readonly id: string;
  /** As of `KeyName`. */
  readonly name: string | null | undefined;
  readonly figures: ReactNode;
}

interface KeysPanelProps<T> {
  readonly title: string;
  readonly about: string;
  readonly action: ReactNode;
  readonly live: Live<T>;
  /** As of `LiveState`. */
  readonly what: string;
  readonly lines: (data: T) => readonly KeyLine[];
  /** Said where there are no lines. */
  readonly none: string;
}

/** A short list of keys, each with figures. */
export function KeysPanel<T>({ title, about, action, live, what, lines, none }: KeysPanelProps<T>) {
  return (
    <Panel title={title} about={about} action={action} flush>
      <LiveState live={live} what={what} skeleton={<ListSkeleton />}>
        {(data) => <KeyLines lines={lines(data)} none={none} />}
      </LiveState>
    </Panel>
  );
}

function KeyLines({ lines, none }: { readonly lines: readonly KeyLine[]; readonly none: string }) {
  if (lines.length === 0) return <p className={styles.quiet}>{none}</p>;
  return (
    <ul className={styles.list}>
      {lines.map(({ id, name, figures }) => (
        <li key={id}>
          <KeyName id={id} name={name} />
          <span className={styles.figures}>{figures}</span>
        </li>
      ))}
    </ul>
  );
}

function ListSkeleton() {
  return (
    <ul className={styles.list} aria-hidden="true">
      {[1, 2, 3, 4].map((row) => (
        <li key={row}>
          <Skeleton />
        </li>
      ))}
    </ul>
  );
}
