import type { components } from '../../../../client/management-api.ts';
import type { Live } from '../../../api/live.ts';
import { type Column, DataTable } from '../../../components/layout/data-table.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { EmptyState } from '../../../components/states/empty-state.tsx';
import { NumberText } from '../../../components/text/number-text.tsx';
import { formatNumber } from '../../../format/numbers.ts';
import type { KeyDetail } from '../key-model.ts';

type EndpointUsage = components['schemas']['EndpointUsage'];
type CustomerUsage = components['schemas']['CustomerUsage'];

const SHOWN = 10;

const ENDPOINT_COLUMNS: readonly Column<EndpointUsage>[] = [
  { id: 'endpoint', header: 'Endpoint', cell: ({ endpoint }) => <Named text={endpoint} /> },
  ...countColumns<EndpointUsage>(),
  {
    id: 'time',
    header: 'Average',
    align: 'end',
    sortBy: ({ averageResponseTimeMs }) => averageResponseTimeMs,
    cell: ({ averageResponseTimeMs }) => `${formatNumber(averageResponseTimeMs)} ms`,
  },
];
const CUSTOMER_COLUMNS: readonly Column<CustomerUsage>[] = [
  { id: 'customer', header: 'Customer', cell: ({ customerId }) => <Named text={customerId} /> },
  ...countColumns<CustomerUsage>(),
];

/** The endpoints with the most requests since the key was created. A notice above the page says if the data is old. */
export function KeyEndpoints({ live }: { readonly live: Live<KeyDetail> }) {
  const rows = live.data?.usage.endpoints;
  return (
    <Panel flush title="Endpoints" about={aboutOf(rows)}>
      <DataTable
        label="Endpoints"
        live={{ ...live, status: 'ready', data: busiest(rows) }}
        columns={ENDPOINT_COLUMNS}
        rowId={({ endpoint }) => endpoint}
        empty={<EmptyState title="No requests yet" />}
      />
    </Panel>
  );
}

/** The customers with the most requests since the key was created. */
export function KeyCustomers({ live }: { readonly live: Live<KeyDetail> }) {
  const rows = live.data?.usage.usageByCustomer;
  return (
    <Panel flush title="Customers" about={aboutOf(rows)}>
      <DataTable
        label="Customers"
        live={{ ...live, status: 'ready', data: busiest(rows) }}
        columns={CUSTOMER_COLUMNS}
        rowId={({ customerId }) => customerId}
        empty={<EmptyState title="No requests yet" />}
      />
    </Panel>
  );
}

function countColumns<Row extends CustomerUsage | EndpointUsage>(): readonly Column<Row>[] {
  return [
    {
      id: 'requests',
      header: 'Requests',
      align: 'end',
      sortBy: ({ requests }) => requests,
      cell: ({ requests }) => <NumberText value={requests} />,
    },
    {
      id: 'failed',
      header: 'Failed',
      align: 'end',
      sortBy: ({ failed }) => failed,
      cell: ({ failed }) => <NumberText value={failed} />,
    },
  ];
}

/** Text from clients. `<bdi>` isolates its direction, so that it can't reorder the text around it. */
function Named({ text }: { readonly text: string }) {
  return <bdi title={text}>{text === '__other__' ? 'All others' : text}</bdi>;
}

function busiest<Row extends { readonly requests: number }>(
  rows: readonly Row[] | undefined,
): readonly Row[] | undefined {
  return rows?.toSorted((a, b) => b.requests - a.requests).slice(0, SHOWN);
}

function aboutOf(rows: readonly object[] | undefined): string {
  const count = rows?.length ?? 0;
  return count > SHOWN
    ? `The ${SHOWN} busiest of ${count}, since the key was made`
    : 'Since the key was made';
}
