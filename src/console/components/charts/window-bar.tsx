import { formatNumber, formatShort } from '../../format/numbers.ts';
import styles from './window-bar.module.css';

interface WindowBarProps {
  /** Null if it is unknown, because Redis is unavailable. */
  readonly used: number | null;
  /** The present limit of the window, including grants. */
  readonly limit: number;
}

/** A key whose window is used up to this share is near its limit. */
export const NEAR_LIMIT_SHARE = 0.8;

/** How much of a rate limit window is used: "412 / 1,000" with a bar. Amber near the limit, red when nothing is left. */
export function WindowBar({ used, limit }: WindowBarProps) {
  if (used === null) return <span className={styles.figure}>not known now</span>;
  const share = limit === 0 ? 1 : Math.min(used / limit, 1);
  const level = share >= 1 ? styles.full : share >= NEAR_LIMIT_SHARE ? styles.near : styles.allowed;
  return (
    <span className={styles.bar} title={`${formatNumber(used)} of ${formatNumber(limit)} used`}>
      <span className={styles.track} aria-hidden="true">
        <svg className={styles.used} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
          <rect className={level} width={share * 100} height="6" />
        </svg>
      </span>
      <span className={styles.figure}>
        {formatShort(used)} / {formatShort(limit)}
        {share >= 1 && <span className="visually-hidden"> nothing left</span>}
      </span>
    </span>
  );
}
