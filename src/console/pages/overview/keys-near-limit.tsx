import { Link } from 'wouter';
import { useScopes } from '../../api/api-context.tsx';
import { useLive } from '../../api/live.ts';
import { NEAR_LIMIT_SHARE, WindowBar } from '../../components/charts/window-bar.tsx';
import { formatShare } from '../../format/numbers.ts';
import { type LimitCounter, type ListedKey, quotaOf } from '../keys/key-model.ts';
import { type KeyLine, KeysPanel } from './keys-panel.tsx';

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
    <KeysPanel
      title="Near a limit"
      about={`At least ${formatShare(NEAR_LIMIT_SHARE)} of a window used, of the ${LOOKED_AT} keys used last`}
      action={can('keys:read') && <Link href="/keys?sort=lastUsedAt&order=desc">Keys by last use</Link>}
      live={live}
      what="keys"
      lines={({ apiKeys }) => linesOf(apiKeys)}
      none="No key is near a limit now."
    />
  );
}

function linesOf(keys: readonly ListedKey[]): readonly KeyLine[] {
  const near = keys.flatMap(withTightest).filter(({ share }) => share >= NEAR_LIMIT_SHARE);
  const nearest = near.toSorted((a, b) => b.share - a.share).slice(0, MOST);
  return nearest.map(({ key, limit, used }) => ({
    id: key.consumerApiKeyId,
    name: key.name,
    figures: (
      <>
        per {limit.period}
        <WindowBar used={used} limit={quotaOf(limit)} />
      </>
    ),
  }));
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
    const room = quotaOf(limit);
    return [{ key, limit, used: limit.used, share: room === 0 ? 1 : limit.used / room }];
  });
  return shares.toSorted((a, b) => b.share - a.share).slice(0, 1);
}
