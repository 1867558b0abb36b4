import { Link } from 'wouter';
import type { components } from '../../../client/management-api.ts';
import { useScopes } from '../../api/api-context.tsx';
import { useLive } from '../../api/live.ts';
import { NEAR_LIMIT_SHARE, WindowBar } from '../../components/charts/window-bar.tsx';
import { Panel } from '../../components/layout/panel.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { KeyName } from '../../components/text/key-name.tsx';
import { formatShare } from '../../format/numbers.ts';
import { ListSkeleton } from './list-skeleton.tsx';
import styles from './overview.module.css';

type ListedKey = components['schemas']['ListedConsumerKey'];
type LimitCounter = components['schemas']['LimitCounter'];

/** The longest page that the interface allows with `include=limits`. */
const LOOKED_AT = 200;
const MOST = 6;

/** The keys near a limit, among those that were used last. */
export function KeysNearLimit() {
  const { can } = useScopes();
  const live = useLive(
    ['keys-near-limit'],
    (client, signal) =>
      client.GET('/consumer-api-key', {
        params: {
          query: { status: 'active', sort: 'lastUsedAt', order: 'desc', include: 'limits', limit: LOOKED_AT },
        },
        signal,
      }),
    { scope: 'keys:read' },
  );
  return (
    <Panel
      title="Near a limit"
      about={`At least ${formatShare(NEAR_LIMIT_SHARE)} of a window used, of the ${LOOKED_AT} keys used last`}
      action={can('keys:read') && <Link href="/keys?sort=lastUsedAt&order=desc">Keys by last use</Link>}
      flush
    >
      <LiveState live={live} what="keys" skeleton={<ListSkeleton />}>
        {({ apiKeys }) => {
          const near = apiKeys
            .flatMap(withTightest)
            .filter(({ share }) => share >= NEAR_LIMIT_SHARE)
            .toSorted((a, b) => b.share - a.share)
            .slice(0, MOST);
          if (near.length === 0) return <p className={styles.quiet}>No key is near a limit now.</p>;
          return (
            <ul className={styles.list}>
              {near.map(({ key, limit, used }) => (
                <li key={key.consumerApiKeyId}>
                  <KeyName id={key.consumerApiKeyId} name={key.name} />
                  <span className={styles.figures}>
                    per {limit.period}
                    <WindowBar used={used} limit={limit.limit + (limit.granted ?? 0)} />
                  </span>
                </li>
              ))}
            </ul>
          );
        }}
      </LiveState>
    </Panel>
  );
}

interface Tightest {
  readonly key: ListedKey;
  readonly limit: LimitCounter;
  readonly used: number;
  readonly share: number;
}

/** The most used open window of a key, in a list; empty if no window is known to be open. */
function withTightest(key: ListedKey): readonly Tightest[] {
  const shares = (key.limits ?? []).flatMap((limit) => {
    if (limit.mode === 'shadow' || limit.used === null || limit.open !== true) return [];
    const room = limit.limit + (limit.granted ?? 0);
    return [{ key, limit, used: limit.used, share: room === 0 ? 1 : limit.used / room }];
  });
  return shares.toSorted((a, b) => b.share - a.share).slice(0, 1);
}
