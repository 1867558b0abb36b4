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

/** Hands a file that the gateway has made to the browser's downloads. Throws a `ManagementFault` where there is none. */
async function downloadCsv(
  call: Promise<{ readonly data?: Blob | undefined; readonly error?: unknown; readonly response: Response }>,
  name: string,
): Promise<void> {
  const { data, error, response } = await call;
  if (!response.ok || data === undefined) throw new ManagementFault(response, error);
  saveFile(data, name);
}
