import { type NoteUnreadable, rotateSeals } from '../secrets/rotate-seals.ts';
import { resealed, type WebhookSeal } from './sealed-webhook.ts';
import type { StoredWebhook } from './webhook.ts';

/** Access to what webhooks have encrypted. Every method rejects with `StoreUnavailable`. */
export interface SealedWebhooks {
  /** At most `limit` webhooks, by id, after `webhookId`. */
  after(webhookId: string | undefined, limit: number): Promise<readonly StoredWebhook[]>;
  /** Replaces what is encrypted, unless the webhook was changed or deleted in the meantime. */
  replace(present: StoredWebhook, by: StoredWebhook): Promise<void>;
}

/**
 * Encrypts the secrets and headers of all webhooks with the first encryption key, while replicas run. Resolves with the number of webhooks
 * that needed it. `noteUnreadable` gets those that were sealed with an encryption key that is not in the list.
 */
export function rotateSealedWebhooks(
  webhooks: SealedWebhooks,
  vault: WebhookSeal & { isCurrent(sealed: Buffer): boolean },
  noteUnreadable: NoteUnreadable,
): Promise<number> {
  return rotateSeals<StoredWebhook>({
    after: (last, limit) => webhooks.after(last?.webhook.id, limit),
    isCurrent: ({ sealedSecret, previousSealedSecret, sealedHeaders }) =>
      [sealedSecret, previousSealedSecret, sealedHeaders].every(
        (each) => each === null || vault.isCurrent(each),
      ),
    seal: (stored) => webhooks.replace(stored, resealed(stored, vault)),
    noteUnreadable: ({ webhook }) => noteUnreadable(webhook.id),
  });
}
