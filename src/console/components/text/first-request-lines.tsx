import { useConsumerAddress } from '../../api/consumer-address.ts';
import { CopyButton } from '../forms/copy-button.tsx';
import styles from './first-request-lines.module.css';

/** The lines for a shell that make a first request, to be copied. The secret is typed: it is in no history of commands. */
export function FirstRequestLines() {
  const text = [
    `GATEWAY=${useConsumerAddress().replace(/\/$/, '')}`,
    // One command: otherwise a shell may read the next pasted line as the secret. Without `-p`, which means something else in zsh.
    `printf 'Secret: ' && read -rs KEY && echo &&`,
    '  curl -i "$GATEWAY/" -H "Authorization: Bearer $KEY"',
  ].join('\n');
  return (
    <div className={styles.lines}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} what="curl lines" />
    </div>
  );
}
