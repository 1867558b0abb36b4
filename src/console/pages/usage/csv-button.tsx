import { Download } from 'lucide-react';
import { useState } from 'react';
import { useApi } from '../../api/api-context.tsx';
import { downloadCsv } from '../../api/download-csv.ts';
import { faultSentence } from '../../api/fault-kind.ts';
import { Button } from '../../components/forms/button.tsx';
import { toast } from '../../components/states/toast.tsx';
import { now } from '../../format/clock.ts';
import { timeZone } from '../../format/exact-time.ts';
import { isByUtcDay, queryOf, spanOf, type UsageView } from './usage-view.ts';

/** Downloads what the view shows, bucket by bucket and group by group, as the gateway writes it. */
export function CsvButton({ view }: { readonly view: UsageView }) {
  const { client } = useApi();
  const [isPending, setPending] = useState(false);
  const download = async () => {
    setPending(true);
    const { groupBy, interval } = view;
    const query = queryOf(view, spanOf(view, now()), timeZone);
    const days = isByUtcDay(groupBy)
      ? ({ timeZone: 'UTC', interval: interval === 'hour' ? 'day' : interval } as const)
      : {};
    try {
      await downloadCsv(
        client.GET('/api-keys/usage', {
          params: { query: { ...query, ...days, ...(groupBy !== undefined && { groupBy }), format: 'csv' } },
          parseAs: 'blob',
        }),
        'usage.csv',
      );
    } catch (error) {
      toast.failed('The file could not be made', faultSentence(error));
    }
    setPending(false);
  };
  return (
    <Button onClick={() => void download()} disabled={isPending}>
      <Download aria-hidden="true" />
      Download CSV
    </Button>
  );
}
