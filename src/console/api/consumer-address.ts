import { useApi } from './api-context.tsx';

/** The address for consumers' requests, as far as the console knows it: its own host with the public port. Ends with a slash. */
export function useConsumerAddress(): string {
  const { publicPort } = useApi().whoami.settings;
  return consumerAddress(window.location.href, publicPort);
}

/** The origin of the console with the public port. Without `publicPort` the port stays: it is the same, or the replica is older. */
export function consumerAddress(consoleUrl: string, publicPort: number | null | undefined): string {
  const address = new URL('/', consoleUrl);
  if (typeof publicPort === 'number') address.port = String(publicPort);
  return address.href;
}
