import { ManagementFault } from '../../client/management-fault.ts';

/** Hands a file that the gateway has made to the browser's downloads. Throws a `ManagementFault` where there is none. */
export async function downloadCsv(
  call: Promise<{ readonly data?: Blob | undefined; readonly error?: unknown; readonly response: Response }>,
  name: string,
): Promise<void> {
  const { data, error, response } = await call;
  if (!response.ok || data === undefined) throw new ManagementFault(response, error);
  const url = URL.createObjectURL(data);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
