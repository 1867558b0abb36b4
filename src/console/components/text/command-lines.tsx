import { CopyButton } from '../forms/copy-button.tsx';
import styles from './command-lines.module.css';

interface CommandLinesProps {
  readonly lines: readonly string[];
  /** Names them for the copy button: "curl lines". */
  readonly what: string;
}

/** Lines for a shell, to be copied. */
export function CommandLines({ lines, what }: CommandLinesProps) {
  const text = lines.join('\n');
  return (
    <div className={styles.lines}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} what={what} />
    </div>
  );
}

/** The lines that make a first request. The secret is typed: it is in no history of commands. */
export function firstRequestLines(address: string): readonly string[] {
  return [
    `GATEWAY=${address.replace(/\/$/, '')}`,
    'read -rsp "Secret: " KEY',
    'curl -i "$GATEWAY/" -H "Authorization: Bearer $KEY"',
  ];
}
