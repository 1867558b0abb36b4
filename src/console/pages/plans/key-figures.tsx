import { KeyName } from '../../components/text/key-name.tsx';
import { formatNumber } from '../../format/numbers.ts';
import styles from './plans.module.css';
import { WideTable } from './wide-table.tsx';

interface KeyFiguresProps {
  readonly name: string;
  /** The headings of the figures. */
  readonly heads: readonly string[];
  readonly keys: readonly {
    readonly id: string;
    /** As of `KeyName`. */
    readonly name: string | null | undefined;
    readonly figures: readonly number[];
  }[];
}

/** A table of keys with figures. */
export function KeyFigures({ name: label, heads, keys }: KeyFiguresProps) {
  return (
    <WideTable
      label="Keys, scrollable"
      name={label}
      heads={[['Key'], ...heads.map((head) => [head, styles.end] as const)]}
    >
      {keys.map(({ id, name, figures }) => (
        <tr key={id}>
          <td>
            <KeyName id={id} name={name} />
          </td>
          {figures.map((figure, column) => (
            <td key={heads[column]} className={styles.end}>
              {formatNumber(figure)}
            </td>
          ))}
        </tr>
      ))}
    </WideTable>
  );
}
