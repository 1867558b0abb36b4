import { Download } from 'lucide-react';
import { useState } from 'react';
import type { ManagementClient } from '../../../client/management-client.ts';
import { useApi } from '../../api/api-context.tsx';
import { downloadCsv } from '../../api/download-csv.ts';
import { faultSentence } from '../../api/fault-kind.ts';
import { toast } from '../states/toast.tsx';
import { Button } from './button.tsx';

interface CsvButtonProps {
  /** Of the file. */
  readonly name: string;
  /** Asks the gateway for the file. */
  readonly fetchCsv: (client: ManagementClient) => Parameters<typeof downloadCsv>[0];
}

/** Downloads a CSV file that the gateway writes. */
export function CsvButton({ name, fetchCsv }: CsvButtonProps) {
  const { client } = useApi();
  const [isPending, setPending] = useState(false);
  const download = async () => {
    setPending(true);
    try {
      await downloadCsv(fetchCsv(client), name);
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
