import { TollgateError } from '../errors.ts';
import type { AddressList } from '../platform/address-list.ts';
import type { OriginList } from './origin-list.ts';

/** Most entries of a key's `allowedIps`. */
export const MAX_ALLOWED_IPS = 100;

/** Where a key may be used from; null = anywhere. */
export interface KeyRestrictions {
  readonly addresses: AddressList | null;
  /** The origins of the web pages that may use the key. */
  readonly origins: OriginList | null;
}

/** Where a request comes from. */
export interface RequestSource {
  /** The client's address as far as it can be trusted; empty when it is not known. */
  readonly address: string;
  /** The origin of the page that makes it, as the client sent it. */
  readonly origin: string | undefined;
  /** Whether the request has the header `Sec-Fetch-Site`, which browsers send. Other clients may send it, or not. */
  readonly isFromBrowser: boolean;
}

/** Why a key may not be used from this source; undefined when it may. */
export function restrictionFault(
  { addresses, origins }: KeyRestrictions,
  { address, origin, isFromBrowser }: RequestSource,
): TollgateError | undefined {
  if (addresses !== null && !addresses.includes(address))
    return new TollgateError(
      'address_not_allowed',
      'The consumer API key may not be used from this address.',
    );
  if (origins !== null && (origin === undefined ? isFromBrowser : !origins.includes(origin)))
    return new TollgateError('origin_not_allowed', 'The consumer API key may not be used by this web page.');
  return undefined;
}
