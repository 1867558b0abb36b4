import { createHmac } from 'node:crypto';
import type { Random } from '../../platform/random.ts';

/** How the secrets of webhooks begin, as Standard Webhooks says. */
const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** A new secret of a webhook. */
export function createWebhookSecret(random: Random): string {
  return `${SECRET_PREFIX}${random.bytes(SECRET_BYTES).toString('base64')}`;
}

/** The part of a secret that may be shown. */
export function webhookSecretHint(secret: string): string {
  return `${secret.slice(0, SECRET_PREFIX.length + 4)}…${secret.slice(-5, -1)}`;
}

/** What is signed. */
export interface SignedContent {
  readonly webhookId: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** The header `webhook-signature` of Standard Webhooks: one signature for each secret. */
export function webhookSignature(
  secrets: readonly string[],
  { webhookId, timestamp, body }: SignedContent,
): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
      return `v1,${createHmac('sha256', key).update(`${webhookId}.${timestamp}.${body}`).digest('base64')}`;
    })
    .join(' ');
}
