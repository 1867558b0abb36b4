import { Download } from 'lucide-react';
import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { useApi } from '../../api/api-context.tsx';
import type { Call } from '../../api/live.ts';
import { saveFile } from '../../api/save-file.ts';
import { useAnnouncedCall } from '../../api/use-announced-call.ts';
import { Button } from './button.tsx';

/** Without it Excel reads UTF-8 as the code page of the computer. */
const BYTE_ORDER_MARK = '\ufeff';

interface CsvButtonProps {
  /** The file name. */
  readonly name: string;
  /** Requests the file. */
  readonly fetchCsv: (client: ManagementClient) => ReturnType<Call<Blob>>;
}

/** Downloads a CSV file that the gateway writes. */
export function CsvButton({ name, fetchCsv }: CsvButtonProps) {
  const { client } = useApi();
  const { isPending, run } = useAnnouncedCall('The file could not be made');
  const download = () =>
    run(async () => {
      const csv = await bodyOf(fetchCsv(client));
      saveFile(new Blob([BYTE_ORDER_MARK, csv], { type: csv.type }), name);
    });
  return (
    <Button onClick={download} aria-disabled={isPending}>
      <Download aria-hidden="true" />
      Download CSV
    </Button>
  );
}
