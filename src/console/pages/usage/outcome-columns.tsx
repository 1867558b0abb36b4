import type { Outcomes } from '../../api/outcome-counts.ts';
import type { Column } from '../../components/layout/data-table.tsx';
import { formatNumber } from '../../format/numbers.ts';

/** The columns with the outcomes, the same in each table of usage. */
export function outcomeColumns<Row extends Outcomes>(): readonly Column<Row>[] {
  return [
    number('requests', 'Requests'),
    // On a phone: the requests that were neither limited nor failed.
    { ...number('allowed', 'Allowed'), wideOnly: true },
    number('limited', 'Limited'),
    number('failed', 'Failed'),
    {
      id: 'time',
      header: 'Average time',
      wideOnly: true,
      align: 'end',
      sortBy: (row) => row.averageResponseTimeMs,
      cell: (row) => `${formatNumber(Math.round(row.averageResponseTimeMs * 10) / 10)} ms`,
    },
  ];
}

function number<Row extends Outcomes>(
  name: 'requests' | 'allowed' | 'limited' | 'failed',
  header: string,
): Column<Row> {
  return {
    id: name,
    header,
    align: 'end',
    sortBy: (row) => row[name],
    cell: (row) => formatNumber(row[name]),
  };
}
