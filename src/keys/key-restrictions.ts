import { TollgateError } from '../errors.ts';
import type { AddressList } from '../platform/address-list.ts';

/** Most entries of a key's `allowedIps`. */
export const MAX_ALLOWED_IPS = 100;

/** Where a key may be used from. */
export interface KeyRestrictions {
  readonly addresses: AddressList;
}

/** Where a request comes from. */
export interface RequestSource {
  /** The client's address as far as it can be trusted; empty when it is not known. */
  readonly address: string;
}

/** Why a key may not be used from there; undefined when it may. */
export function restrictionFault(
  { addresses }: KeyRestrictions,
  { address }: RequestSource,
): TollgateError | undefined {
  if (!addresses.includes(address))
    return new TollgateError(
      'address_not_allowed',
      'The consumer API key may not be used from this address.',
    );
  return undefined;
}
