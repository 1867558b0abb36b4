import { formatNumber, formatShort } from '../../format/numbers.ts';

interface NumberProps {
  readonly value: number;
  /** "1.2M", with the exact number on hover. */
  readonly short?: boolean;
}

/** A number in the reader's locale. */
export function NumberText({ value, short = false }: NumberProps) {
  if (!short) return <>{formatNumber(value)}</>;
  return <span title={formatNumber(value)}>{formatShort(value)}</span>;
}
