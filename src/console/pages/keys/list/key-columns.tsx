import { Link } from 'wouter';
import { Sparkline } from '../../../components/charts/sparkline.tsx';
import { WindowBar } from '../../../components/charts/window-bar.tsx';
import type { Column } from '../../../components/layout/data-table.tsx';
import { SecondLine } from '../../../components/layout/second-line.tsx';
import { RelativeTime } from '../../../components/text/relative-time.tsx';
import { useNow } from '../../../components/text/use-now.ts';
import { formatNumber, formatShort } from '../../../format/numbers.ts';
import { type ListedKey, quotaOf, tightestLimit } from '../key-model.ts';
import { KeyStateBadge, keyState } from '../key-state.tsx';
import { useKeyActivity } from './key-activity.ts';
import styles from './keys-page.module.css';

/** The columns of the list. Those with `sortBy` are sorted by the gateway, by the column's id. */
export const KEY_COLUMNS: readonly Column<ListedKey>[] = [
  { id: 'name', header: 'Name', sortBy: ({ name }) => name, cell: (key) => <NameCell apiKey={key} /> },
  {
    id: 'plan',
    header: 'Plan',
    wideOnly: true,
    cell: ({ rateLimitId }) => rateLimitId ?? <span className={styles.faint}>default</span>,
  },
  {
    id: 'window',
    header: 'Tightest window',
    wideOnly: true,
    cell: ({ limits }) => <WindowCell limits={limits ?? []} />,
  },
  {
    id: 'activity',
    header: 'Last 24 hours',
    wideOnly: true,
    cell: ({ consumerApiKeyId }) => <ActivityCell keyId={consumerApiKeyId} />,
  },
  {
    id: 'lastUsedAt',
    header: 'Last used',
    wideOnly: true,
    sortBy: ({ lastUsedAt }) => lastUsedAt,
    cell: ({ lastUsedAt }) => <RelativeTime at={lastUsedAt} missing="Never used" />,
  },
  {
    id: 'expiresAt',
    header: 'Expires',
    wideOnly: true,
    sortBy: ({ expiresAt }) => expiresAt,
    cell: ({ expiresAt }) => <RelativeTime at={expiresAt} />,
  },
  { id: 'tags', header: 'Tags', wideOnly: true, cell: ({ tags }) => <Tags tags={tags} /> },
];

function NameCell({ apiKey }: { readonly apiKey: ListedKey }) {
  const now = useNow();
  const state = keyState(apiKey, now);
  return (
    <span className={styles.name}>
      <Link href={`/keys/${apiKey.consumerApiKeyId}`} title={apiKey.name}>
        <bdi>{apiKey.name}</bdi>
      </Link>
      {apiKey.secretHint !== null && <code className={styles.hint}>{apiKey.secretHint}</code>}
      {state.name !== 'active' && <KeyStateBadge state={state} />}
      <KeySecondLine apiKey={apiKey} />
    </span>
  );
}

/** What the other columns say, on a phone. */
function KeySecondLine({ apiKey: { rateLimitId, limits, lastUsedAt } }: { readonly apiKey: ListedKey }) {
  const tightest = tightestLimit(limits ?? []);
  return (
    <SecondLine>
      {rateLimitId ?? 'Default plan'}
      {tightest !== undefined && tightest.used !== null && (
        <>
          {' '}
          · {formatShort(tightest.used)} / {formatShort(quotaOf(tightest))}
        </>
      )}{' '}
      · <RelativeTime at={lastUsedAt} missing="Never used" />
    </SecondLine>
  );
}

function WindowCell({ limits }: { readonly limits: NonNullable<ListedKey['limits']> }) {
  const tightest = tightestLimit(limits);
  if (tightest === undefined) return <span className={styles.faint}>no limit</span>;
  return <WindowBar used={tightest.used} limit={quotaOf(tightest)} />;
}

function ActivityCell({ keyId }: { readonly keyId: string }) {
  const activity = useKeyActivity(keyId);
  if (activity === undefined) return null;
  const requests = activity.reduce((sum, each) => sum + each, 0);
  if (requests === 0) return <span className={styles.faint}>none</span>;
  return <Sparkline values={activity} label={`${formatNumber(requests)} requests in 24 hours`} />;
}

export function Tags({ tags }: { readonly tags: readonly string[] }) {
  return (
    <span className={styles.tags}>
      {tags.map((tag) => (
        <Link key={tag} className={styles.tag} href={`/keys?tag=${encodeURIComponent(tag)}`}>
          {tag}
        </Link>
      ))}
    </span>
  );
}
