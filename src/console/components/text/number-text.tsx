import { formatNumber, formatShort } from '../../format/numbers.ts';

/** A number in a tight place: "1.2M", with the exact number on hover. */
export function NumberText({ value }: { readonly value: number }) {
  return <span title={formatNumber(value)}>{formatShort(value)}</span>;
}
