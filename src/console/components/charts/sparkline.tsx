import styles from './sparkline.module.css';

interface SparklineProps {
  readonly values: readonly number[];
  /** The content as a sentence: "4,120 requests in 24 hours". */
  readonly label: string;
}

const [WIDTH, HEIGHT] = [96, 24];

/** A small line without axes, for a row of a table. */
export function Sparkline({ values, label }: SparklineProps) {
  const most = Math.max(...values, 1);
  const points = values.map((value, index) => {
    const x = values.length === 1 ? WIDTH : (index / (values.length - 1)) * WIDTH;
    return `${round(x)},${round(HEIGHT - 1 - (value / most) * (HEIGHT - 3))}`;
  });
  const line = points.join(' ');
  return (
    <svg
      className={styles.line}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon className={styles.area} points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />
      <polyline className={styles.stroke} points={line} />
    </svg>
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
