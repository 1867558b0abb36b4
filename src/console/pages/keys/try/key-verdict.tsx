import type { components } from '../../../../client/management-api.ts';
import { Facts } from '../../../components/layout/facts.tsx';
import { PageLink } from '../../../components/text/page-link.tsx';
import { RelativeTime } from '../../../components/text/relative-time.tsx';
import { StatusBadge } from '../../../components/text/status-badge.tsx';
import { formatNumber } from '../../../format/numbers.ts';

type Verdict = components['schemas']['Verdict'];

/** The decision about a request that was tried, and the key that it has. */
export function KeyVerdict({ verdict }: { readonly verdict: Verdict }) {
  const { allowed, status, code } = verdict;
  return (
    <section aria-label="Decision" aria-live="polite">
      <p>
        {allowed ? (
          <StatusBadge tone="allowed">Allowed</StatusBadge>
        ) : (
          <StatusBadge tone={status === 429 ? 'limited' : 'failed'}>
            Rejected: {status} {code}
          </StatusBadge>
        )}
      </p>
      {verdict.consumerApiKeyId !== undefined && <KeyFacts {...verdict} keyId={verdict.consumerApiKeyId} />}
    </section>
  );
}

function KeyFacts(verdict: Verdict & { readonly keyId: string }) {
  const { keyId, name, rateLimitId, customerId, limits = [], retryAfterSeconds = null } = verdict;
  return (
    <Facts
      facts={[
        [
          'Key',
          <PageLink key="key" scope="keys:read" href={`/keys/${keyId}`}>
            <bdi>{name ?? keyId}</bdi>
          </PageLink>,
        ],
        ['Plan', rateLimitId ?? 'none: unlimited'],
        ['Customer', <bdi key="customer">{customerId}</bdi>],
        ...limits.map(
          ({ limitId, limit, remaining, resetTime }) =>
            [
              limitId,
              <span key={limitId}>
                {formatNumber(remaining)} of {formatNumber(limit)} left, reset <RelativeTime at={resetTime} />
              </span>,
            ] as const,
        ),
        ...(retryAfterSeconds === null
          ? []
          : [['Retry', `after ${formatNumber(retryAfterSeconds)} s`] as const]),
      ]}
    />
  );
}
