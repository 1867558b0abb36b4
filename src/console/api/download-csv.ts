import { ManagementFault } from '../../client/management-fault.ts';
import { saveFile } from './save-file.ts';

/** Hands a file that the gateway has made to the browser's downloads. Throws a `ManagementFault` where there is none. */
export async function downloadCsv(
  call: Promise<{ readonly data?: Blob | undefined; readonly error?: unknown; readonly response: Response }>,
  name: string,
): Promise<void> {
  const { data, error, response } = await call;
  if (!response.ok || data === undefined) throw new ManagementFault(response, error);
  saveFile(data, name);
}
