import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { KEY_EVENTS } from '../../api/followed.ts';
import { useLive } from '../../api/live.ts';
import { Panel } from '../../components/layout/panel.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { KeyName } from '../../components/text/key-name.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { now } from '../../format/now.ts';
import { counted } from '../../format/numbers.ts';
import { ListSkeleton } from './list-skeleton.tsx';
import styles from './overview.module.css';

const UNUSED_DAYS = 30;
const DAY_MS = 86_400_000;
const MOST = 5;

/** Keys that expire soon: their consumers need to know. */
export function ExpiringKeys() {
  const live = useLive(
    ['expiring-keys'],
    (client, signal) =>
      client.GET('/consumer-api-key', {
        params: {
          query: { status: 'expiring', sort: 'expiresAt', order: 'asc', limit: MOST, count: 'true' },
        },
        signal,
      }),
    { scope: 'keys:read', follows: KEY_EVENTS },
  );
  return (
    <Panel
      title="Expiring soon"
      about="The next to end first"
      action={
        (live.data?.total ?? 0) > 0 && (
          <Link href="/keys?status=expiring">{counted(live.data?.total ?? 0, 'key')}</Link>
        )
      }
      flush
    >
      <LiveState live={live} what="keys" skeleton={<ListSkeleton />}>
        {({ apiKeys }) => (
          <KeyLines
            keys={apiKeys}
            none="No key expires soon."
            figure={({ expiresAt }) => (
              <>
                expires <RelativeTime at={expiresAt} />
              </>
            )}
          />
        )}
      </LiveState>
    </Panel>
  );
}

/** Keys that seem to be unused. */
export function UnusedKeys() {
  const unusedSince = `${new Date(now() - UNUSED_DAYS * DAY_MS).toISOString().slice(0, 10)}T00:00:00Z`;
  const live = useUnusedKeys(unusedSince);
  return (
    <Panel
      title="Unused"
      about={`Active, older than ${UNUSED_DAYS} days, and not used for as long`}
      action={
        (live.data?.total ?? 0) > 0 && (
          <Link
            href={`/keys?unusedSince=${unusedSince}&createdBefore=${unusedSince}&sort=lastUsedAt&order=asc`}
          >
            {counted(live.data?.total ?? 0, 'key')}
          </Link>
        )
      }
      flush
    >
      <LiveState live={live} what="keys" skeleton={<ListSkeleton />}>
        {({ apiKeys }) => (
          <KeyLines
            keys={apiKeys}
            none={`Every key older than ${UNUSED_DAYS} days was used in the last ${UNUSED_DAYS} days.`}
            figure={({ lastUsedAt }) => (
              <>
                last used <RelativeTime at={lastUsedAt} />
              </>
            )}
          />
        )}
      </LiveState>
    </Panel>
  );
}

function useUnusedKeys(unusedSince: string) {
  return useLive(
    ['unused-keys'],
    (client, signal) =>
      client.GET('/consumer-api-key', {
        params: {
          query: {
            status: 'active',
            unusedSince,
            createdBefore: unusedSince,
            sort: 'lastUsedAt',
            order: 'asc',
            limit: MOST,
            count: 'true',
          },
        },
        signal,
      }),
    { scope: 'keys:read', follows: KEY_EVENTS },
  );
}

interface KeyLine {
  readonly consumerApiKeyId: string;
  readonly name: string;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
}

interface KeyLinesProps {
  readonly keys: readonly KeyLine[];
  readonly none: string;
  readonly figure: (key: KeyLine) => ReactNode;
}

function KeyLines({ keys, none, figure }: KeyLinesProps) {
  if (keys.length === 0) return <p className={styles.quiet}>{none}</p>;
  return (
    <ul className={styles.list}>
      {keys.map((key) => (
        <li key={key.consumerApiKeyId}>
          <KeyName id={key.consumerApiKeyId} name={key.name} />
          <span className={styles.figures}>
            <span>{figure(key)}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
