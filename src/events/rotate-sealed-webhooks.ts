import { resealed, type WebhookSeal } from './sealed-webhook.ts';
import type { StoredWebhook } from './webhook.ts';

/** Access to what webhooks have encrypted. Every method rejects with `StoreUnavailable`. */
export interface SealedWebhooks {
  /** At most `limit` webhooks, by id, after `webhookId`. */
  after(webhookId: string | undefined, limit: number): Promise<readonly StoredWebhook[]>;
  /** Replaces what is encrypted, unless the webhook was changed or deleted in the meantime. False if so. */
  replace(present: StoredWebhook, by: StoredWebhook): Promise<boolean>;
}

const WEBHOOKS_AT_ONCE = 500;

/**
 * Encrypts the secrets and headers of all webhooks with the first encryption key, while replicas run. Resolves with the number of webhooks
 * that needed it. Rejects with `UnreadableSecret` if one was sealed with an encryption key that is not in the list.
 */
export async function rotateSealedWebhooks(
  webhooks: SealedWebhooks,
  vault: WebhookSeal & { isCurrent(sealed: Buffer): boolean },
): Promise<number> {
  let rotated = 0;
  let page = await webhooks.after(undefined, WEBHOOKS_AT_ONCE);
  while (page.length > 0) {
    for (const stored of page) {
      const { sealedSecret, previousSealedSecret, sealedHeaders } = stored;
      const sealed = [sealedSecret, previousSealedSecret, sealedHeaders].filter((each) => each !== null);
      if (sealed.every((each) => vault.isCurrent(each))) continue;
      if (await webhooks.replace(stored, resealed(stored, vault))) rotated += 1;
    }
    page = await webhooks.after(page.at(-1)?.webhook.id, WEBHOOKS_AT_ONCE);
  }
  return rotated;
}
