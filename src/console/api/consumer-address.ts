import { useApi } from './api-context.tsx';

/** Where consumers send requests, as far as the console can know: its own host, at the port for consumers. Ends with a slash. */
export function useConsumerAddress(): string {
  const { publicPort } = useApi().whoami.settings;
  return consumerAddress(window.location.href, publicPort);
}

/** An address of the console with the port for consumers; replicas of older versions name none. */
export function consumerAddress(consoleUrl: string, publicPort: number | null | undefined): string {
  const address = new URL('/', consoleUrl);
  if (typeof publicPort === 'number') address.port = String(publicPort);
  return address.href;
}
