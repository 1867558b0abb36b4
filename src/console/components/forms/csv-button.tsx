import { Download } from 'lucide-react';
import { useState } from 'react';
import type { ManagementClient } from '../../../client/management-client.ts';
import { ManagementFault } from '../../../client/management-fault.ts';
import { useApi } from '../../api/api-context.tsx';
import { faultSentence } from '../../api/fault-kind.ts';
import { saveFile } from '../../api/save-file.ts';
import { toast } from '../states/toast.tsx';
import { Button } from './button.tsx';

interface CsvButtonProps {
  /** The file name. */
  readonly name: string;
  /** Requests the file. */
  readonly fetchCsv: (client: ManagementClient) => Parameters<typeof downloadCsv>[0];
}

/** Downloads a CSV file that the gateway writes. */
export function CsvButton({ name, fetchCsv }: CsvButtonProps) {
  const { client } = useApi();
  const [isPending, setPending] = useState(false);
  const download = async () => {
    if (isPending) return;
    setPending(true);
    try {
      await downloadCsv(fetchCsv(client), name);
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

/** Downloads a file that the gateway makes. Throws a `ManagementFault` if the gateway rejects the request. */
async function downloadCsv(
  call: Promise<{ readonly data?: Blob | undefined; readonly error?: unknown; readonly response: Response }>,
  name: string,
): Promise<void> {
  const { data, error, response } = await call;
  if (!response.ok || data === undefined) throw new ManagementFault(response, error);
  saveFile(data, name);
}
