import type { SecretVault } from '../secrets/secret-vault.ts';
import type { StoredWebhook } from './webhook.ts';

/** Headers that are added to requests, by their names. */
export type WebhookHeaders = Readonly<Record<string, string>>;

/** The part of a vault that webhooks need. */
export type WebhookSeal = Pick<SecretVault, 'seal' | 'open'>;

/** Encrypts headers; null if there are none. */
export function sealHeaders(webhookId: string, headers: WebhookHeaders, vault: WebhookSeal): Buffer | null {
  if (Object.keys(headers).length === 0) return null;
  return vault.seal(headersOf(webhookId), JSON.stringify(headers));
}

/** The headers of a webhook. Throws `UnreadableSecret`. */
export function openHeaders({ webhook, sealedHeaders }: StoredWebhook, vault: WebhookSeal): WebhookHeaders {
  return sealedHeaders === null ? {} : JSON.parse(vault.open(headersOf(webhook.id), sealedHeaders));
}

/** The secrets that sign at an instant, the present one first. Throws `UnreadableSecret`. */
export function openSecrets(stored: StoredWebhook, nowMs: number, vault: WebhookSeal): readonly string[] {
  const { webhook, sealedSecret, previousSealedSecret } = stored;
  const isRotating = webhook.previousValidUntilMs !== null && webhook.previousValidUntilMs > nowMs;
  const sealed = [sealedSecret, ...(isRotating && previousSealedSecret ? [previousSealedSecret] : [])];
  return sealed.map((secret) => vault.open(webhook.id, secret));
}

/** What a webhook has encrypted again under the first encryption key. Throws `UnreadableSecret`. */
export function resealed(stored: StoredWebhook, vault: WebhookSeal): StoredWebhook {
  const { id } = stored.webhook;
  const again = (name: string, sealed: Buffer) => vault.seal(name, vault.open(name, sealed));
  const { sealedSecret, previousSealedSecret: previous, sealedHeaders } = stored;
  return {
    ...stored,
    sealedSecret: again(id, sealedSecret),
    previousSealedSecret: previous && again(id, previous),
    sealedHeaders: sealedHeaders && again(headersOf(id), sealedHeaders),
  };
}

function headersOf(webhookId: string): string {
  return `${webhookId} headers`;
}
