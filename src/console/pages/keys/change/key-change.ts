import type { components } from '../../../../client/management-api.ts';
import { type Change, useChange } from '../../../api/change.ts';

type UpdateBody = components['schemas']['UpdateConsumerKeyRequest'];

export interface KeyUpdate {
  readonly body: UpdateBody;
  /** The key is changed only if it still has this entity tag; undefined: in any state. */
  readonly etag?: string | undefined;
  readonly reason?: string | undefined;
}

/** Changes fields of a key. */
export function useKeyUpdate(
  consumerApiKeyId: string,
): Change<KeyUpdate, components['schemas']['ConsumerKey']> {
  return useChange((client, { body, etag, reason }: KeyUpdate) =>
    client.PATCH('/consumer-api-key/{consumerApiKeyId}', {
      params: {
        path: { consumerApiKeyId },
        header: { ...(etag !== undefined && { 'If-Match': etag }), ...reasonHeader(reason) },
      },
      body,
    }),
  );
}

/** The header with the reason for a change, for the audit log. A header carries bytes: UTF-8, one character a byte. */
export function reasonHeader(reason: string | undefined): { readonly 'X-Audit-Reason'?: string } {
  const text = reason?.trim() ?? '';
  if (text === '') return {};
  return { 'X-Audit-Reason': String.fromCharCode(...new TextEncoder().encode(text)) };
}
