import { Link } from 'wouter';
import { KEY_EVENTS } from '../../api/followed.ts';
import { useLive } from '../../api/live.ts';
import { LastUse } from '../../components/text/last-use.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { now } from '../../format/now.ts';
import { counted } from '../../format/numbers.ts';
import { KeysPanel } from './keys-panel.tsx';

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
    <KeysPanel
      title="Expiring soon"
      about="The next to end first"
      action={<TotalLink total={live.data?.total} href="/keys?status=expiring" />}
      live={live}
      what="keys"
      lines={({ apiKeys }) =>
        apiKeys.map(({ consumerApiKeyId: id, name, expiresAt }) => ({
          id,
          name,
          figures: (
            <span>
              expires <RelativeTime at={expiresAt} />
            </span>
          ),
        }))
      }
      none="No key expires soon."
    />
  );
}

/** Keys that seem to be unused. */
export function UnusedKeys() {
  const unusedSince = `${new Date(now() - UNUSED_DAYS * DAY_MS).toISOString().slice(0, 10)}T00:00:00Z`;
  const live = useUnusedKeys(unusedSince);
  const query = `unusedSince=${unusedSince}&createdBefore=${unusedSince}&sort=lastUsedAt&order=asc`;
  return (
    <KeysPanel
      title="Unused"
      about={`Active, older than ${UNUSED_DAYS} days, and not used for as long`}
      action={<TotalLink total={live.data?.total} href={`/keys?${query}`} />}
      live={live}
      what="keys"
      lines={({ apiKeys }) =>
        apiKeys.map(({ consumerApiKeyId: id, name, lastUsedAt }) => ({
          id,
          name,
          figures: (
            <span>
              <LastUse at={lastUsedAt} />
            </span>
          ),
        }))
      }
      none={`Every key older than ${UNUSED_DAYS} days was used in the last ${UNUSED_DAYS} days.`}
    />
  );
}

/** All keys of which the panel shows the first ones. */
function TotalLink({ total = 0, href }: { readonly total: number | undefined; readonly href: string }) {
  return total > 0 && <Link href={href}>{counted(total, 'key')}</Link>;
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
