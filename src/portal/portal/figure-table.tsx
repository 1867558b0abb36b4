import { formatNumber } from '../../console/format/numbers.ts';
import { Text } from '../shared/text.tsx';

interface FigureTableProps {
  /** The heading of the names, and those of the figures. */
  readonly heads: readonly [string, ...string[]];
  readonly rows: readonly {
    readonly id: string | number;
    readonly name: string;
    readonly figures: readonly number[];
  }[];
  /** The class of the names. */
  readonly nameClass?: string;
}

/** A table of names, each with figures. */
export function FigureTable({ heads: [head, ...figureHeads], rows, nameClass }: FigureTableProps) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{head}</th>
          {figureHeads.map((each) => (
            <th key={each} scope="col" class="number">
              {each}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ id, name, figures }) => (
          <tr key={id}>
            <th scope="row" class={nameClass}>
              <Text>{name}</Text>
            </th>
            {figures.map((figure, column) => (
              <td key={`${figureHeads[column]} ${figure}`} class="number">
                {formatNumber(figure)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
