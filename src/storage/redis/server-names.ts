import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { type SentinelConnectionOptions, SentinelConnector, SentinelIterator } from 'ioredis';

type ServerName = Pick<ConnectionOptions, 'servername'>;

/**
 * The options of TLS to a server. They name it (SNI), which the client does not: routers choose the server by its name, and servers of
 * several names the certificate. An IP address is no such name.
 */
export function tlsTo(host: string): ServerName {
  return isIP(host) === 0 ? { servername: host } : {};
}

/** Connects to the sentinels, and to the master that they announce, by TLS with their names. */
export class TlsSentinelConnector extends SentinelConnector {
  /** Takes the options of the client, which its type of connectors does not name. */
  constructor(options: unknown) {
    // What the client's mapping of addresses returns are the options of the connection to the master.
    super({ ...(options as SentinelConnectionOptions), natMap: namedServer });
    this.sentinelIterator = new NamedSentinels(this.options);
  }
}

/** The client has one set of TLS options for all sentinels, and reads them when it has asked for the next one. */
class NamedSentinels extends SentinelIterator {
  readonly #options: SentinelConnectionOptions;

  constructor(options: SentinelConnectionOptions) {
    super(options.sentinels ?? []);
    this.#options = options;
  }

  override next(): ReturnType<SentinelIterator['next']> {
    const next = super.next();
    if (!next.done) this.#options.sentinelTLS = tlsTo(next.value.host ?? '');
    return next;
  }
}

function namedServer(address: string): { host: string; port: number } & ServerName {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon);
  return { host, port: Number(address.slice(colon + 1)), ...tlsTo(host) };
}
