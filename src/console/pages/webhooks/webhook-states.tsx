import { StatusBadge, type Tone } from '../../components/text/status-badge.tsx';
import { formatNumber } from '../../format/numbers.ts';
import type { Delivery, Webhook } from './shown-webhook.ts';

type Status = Delivery['status'];
type Attempt = Delivery['attempts'][number];

/** What the status of a delivery is called. */
export const STATUS_WORDS: Readonly<Record<Status, string>> = {
  pending: 'Waiting',
  succeeded: 'Delivered',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

const FAULT_WORDS: Readonly<Record<NonNullable<Attempt['fault']>, string>> = {
  address_not_allowed: 'Address not allowed',
  name_not_found: 'Name not found',
  connection_failed: 'No connection',
  timeout: 'No response in time',
  invalid_request: 'Invalid request',
  unreadable_secret: 'Secret can’t be read',
};

/** The state of a delivery. One that waits for another attempt after a failure is not simply waiting. */
export function DeliveryBadge({ delivery: { status, attempts } }: { readonly delivery: Delivery }) {
  const isRetried = status === 'pending' && attempts.length > 0;
  return (
    <StatusBadge tone={toneOf(status, isRetried)}>
      {isRetried ? 'Retrying' : STATUS_WORDS[status]}
    </StatusBadge>
  );
}

function toneOf(status: Status, isRetried: boolean): Tone {
  if (status === 'succeeded') return 'allowed';
  if (status === 'failed') return 'failed';
  return isRetried ? 'limited' : 'neutral';
}

/** The status of a response, or why there was none. */
export function attemptWords(attempt: Pick<Attempt, 'responseStatus' | 'fault'> | undefined): string {
  if (attempt === undefined) return '–';
  const { responseStatus, fault } = attempt;
  if (responseStatus !== null) return String(responseStatus);
  // A newer gateway may have more faults than this page knows.
  return fault === null ? 'No response' : (FAULT_WORDS[fault] ?? fault);
}

export function durationWords(ms: number | null): string {
  return ms === null ? '–' : `${formatNumber(ms)} ms`;
}

/** Whether a webhook is on, and why not. */
export function WebhookBadge({ webhook }: { readonly webhook: Webhook }) {
  const { enabled, disabledReason, failingSince } = webhook;
  if (disabledReason !== null) return <StatusBadge tone="failed">{REASON_WORDS[disabledReason]}</StatusBadge>;
  if (!enabled) return <StatusBadge tone="neutral">Disabled</StatusBadge>;
  return failingSince === null ? (
    <StatusBadge tone="allowed">Enabled</StatusBadge>
  ) : (
    <StatusBadge tone="limited">Failing</StatusBadge>
  );
}

const REASON_WORDS: Readonly<Record<NonNullable<Webhook['disabledReason']>, string>> = {
  gone: 'Disabled: the endpoint is gone',
  failing: 'Disabled: it failed for 5 days',
};
