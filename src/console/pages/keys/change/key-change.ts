import type { components } from '../../../../client/management-api.ts';
import { type Change, useChange } from '../../../api/change.ts';
import { reasonHeader } from '../../../api/reason-header.ts';

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
  return useChange(
    (client, { body, etag, reason }: KeyUpdate) =>
      client.PATCH('/consumer-api-key/{consumerApiKeyId}', {
        params: {
          path: { consumerApiKeyId },
          header: { ...(etag !== undefined && { 'If-Match': etag }), ...reasonHeader(reason) },
        },
        body,
      }),
    ['key', consumerApiKeyId],
  );
}
