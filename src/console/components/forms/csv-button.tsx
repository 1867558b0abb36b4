import { Download } from 'lucide-react';
import { useState } from 'react';
import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { useApi } from '../../api/api-context.tsx';
import { faultSentence } from '../../api/fault-kind.ts';
import type { Call } from '../../api/live.ts';
import { saveFile } from '../../api/save-file.ts';
import { toast } from '../states/toast.tsx';
import { Button } from './button.tsx';

interface CsvButtonProps {
  /** The file name. */
  readonly name: string;
  /** Requests the file. */
  readonly fetchCsv: (client: ManagementClient) => ReturnType<Call<Blob>>;
}

/** Downloads a CSV file that the gateway writes. */
export function CsvButton({ name, fetchCsv }: CsvButtonProps) {
  const { client } = useApi();
  const [isPending, setPending] = useState(false);
  const download = async () => {
    if (isPending) return;
    setPending(true);
    try {
      saveFile(await bodyOf(fetchCsv(client)), name);
    } catch (error) {
      toast.failed('The file could not be made', faultSentence(error));
    }
    setPending(false);
  };
  return (
    <Button onClick={() => void download()} aria-disabled={isPending}>
      <Download aria-hidden="true" />
      Download CSV
    </Button>
  );
}
