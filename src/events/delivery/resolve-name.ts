import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { ConcurrencyLimit } from '../../platform/concurrency/concurrency-limit.ts';
import type { ResolveName } from './address-policy.ts';

/** How names are resolved; each has a default that is the system's. */
export interface NameResolverOptions {
  /** The addresses of name servers. */
  readonly servers?: readonly string[];
  /** How long a name server may take at first. Milliseconds. */
  readonly queryTimeoutMs?: number;
  readonly hostsFile?: string;
  /** Occupies a thread until it ends. */
  readonly lookUp?: ResolveName;
}

const QUERY_TIMEOUT_MS = 2000;
const QUERIES = 2;
/** Longest time for IPv6 addresses, once there are IPv4 addresses. Milliseconds. */
const IPV6_MS = 1000;
/** Names that wait for the system, which take turns. */
const SYSTEM_LOOK_UPS = {
  maxRunning: 1,
  maxWaiting: 1000,
  maxWaitingPerGroup: 4,
  overloaded: () => codedError('ETIMEOUT'),
};

/**
 * Resolves names of endpoints, which are not trusted: a name server that never responds must not hold up the gateway's look-ups of its
 * backend and its stores. These occupy threads of which there are few, so endpoints are resolved without one: by the hosts file, then by
 * DNS. Only names which both lack, because they depend on search domains or other sources of the system, are looked up by the system,
 * one at a time.
 */
export function nameResolver({
  servers,
  queryTimeoutMs = QUERY_TIMEOUT_MS,
  hostsFile = '/etc/hosts',
  lookUp = (name) => lookup(name, { all: true }),
}: NameResolverOptions = {}): ResolveName {
  const lookUps = new ConcurrencyLimit(SYSTEM_LOOK_UPS);
  const bySystem: ResolveName = (name) => lookUps.run(() => lookUp(name), name);
  return async (name) => {
    const written = await addressesInHosts(hostsFile, name);
    if (written.length > 0) return written;
    // A new one reads the system's name servers, which may have changed.
    const resolver = new Resolver({ timeout: queryTimeoutMs, tries: QUERIES });
    if (servers !== undefined) resolver.setServers([...servers]);
    const found = await addressesByDns(name, resolver);
    return found.length > 0 ? found : bySystem(name);
  };
}

/** The addresses that the hosts file has for a name. A file that can't be read has none. */
async function addressesInHosts(file: string, name: string): Promise<readonly LookupAddress[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    return family !== 0 && names.some((each) => each.toLowerCase() === name) ? [{ address, family }] : [];
  });
}

/**
 * The addresses of both families, or those of IPv4 if the name servers are too slow with the others: some firewalls drop these queries. None
 * if the name is not known. Rejects if the name servers are too slow with both.
 */
async function addressesByDns(name: string, resolver: Resolver): Promise<readonly LookupAddress[]> {
  let ending: NodeJS.Timeout | undefined;
  const endSoon = (addresses: readonly string[]): readonly string[] => {
    ending = setTimeout(() => resolver.cancel(), IPV6_MS);
    return addresses;
  };
  const results = await Promise.allSettled([resolver.resolve4(name).then(endSoon), resolver.resolve6(name)]);
  clearTimeout(ending);
  const found = results.flatMap((result, index) =>
    result.status === 'rejected'
      ? []
      : result.value.map((address) => ({ address, family: index === 0 ? 4 : 6 })),
  );
  const isLate = results.some((result) => result.status === 'rejected' && result.reason.code === 'ETIMEOUT');
  if (found.length === 0 && isLate) throw codedError('ETIMEOUT');
  return found;
}

function codedError(code: string): Error {
  return Object.assign(new Error('The name was not resolved in time.'), { code });
}
