import { Download } from 'lucide-react';
import { useState } from 'react';
import { useApi } from '../../api/api-context.tsx';
import { downloadCsv } from '../../api/download-csv.ts';
import { faultSentence } from '../../api/fault-kind.ts';
import { Button } from '../../components/forms/button.tsx';
import { toast } from '../../components/states/toast.tsx';
import { type AuditFilter, auditQuery } from './audit-filter.ts';

/** Downloads all entries that the filters let through, not only those on the page. */
export function AuditCsvButton({ filter }: { readonly filter: AuditFilter }) {
  const { client } = useApi();
  const [isPending, setPending] = useState(false);
  const download = async () => {
    setPending(true);
    try {
      await downloadCsv(
        client.GET('/tollgate/audit-log', {
          params: { query: { ...auditQuery(filter), format: 'csv' } },
          parseAs: 'blob',
        }),
        'audit.csv',
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
