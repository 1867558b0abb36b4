import { useQuery } from '@tanstack/react-query';
import type { paths } from '../../../../client/management-api.ts';
import { bodyOf } from '../../../../client/management-client.ts';
import { useApi, useScopes } from '../../../api/api-context.tsx';
import { changedFields } from '../../../api/changed-fields.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import { Notice } from '../../../components/states/notice.tsx';
import { counted, formatNumber } from '../../../format/numbers.ts';
import { KeyFigures } from '../key-figures.tsx';
import { rateWords } from '../limit-words.ts';
import type { PlanTerms } from '../plan-types.ts';
import styles from '../plans.module.css';

type Preview =
  paths['/rate-limit/{rateLimitId}/preview']['post']['responses'][200]['content']['application/json'];

interface PreviewPanelProps {
  readonly rateLimitId: string;
  readonly from: PlanTerms;
  readonly to: PlanTerms;
}

/** What a change would have limited in the last 28 days; renders nothing for a token that may not read usage. */
export function PreviewPanel({ rateLimitId, from, to }: PreviewPanelProps) {
  const { client } = useApi();
  const { can } = useScopes();
  const isReadable = can('plans:read') && can('keys:read') && can('usage:read');
  const body = changedFields(from, to);
  const { data, error } = useQuery({
    queryKey: ['plan-preview', rateLimitId, body],
    queryFn: ({ signal }) =>
      bodyOf(
        client.POST('/rate-limit/{rateLimitId}/preview', { params: { path: { rateLimitId } }, body, signal }),
      ),
    enabled: isReadable,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  if (!isReadable) return null;
  return (
    <section className={styles.past} aria-label="The last 28 days under this change">
      <h3>The last 28 days under this change</h3>
      {error !== null && <Notice tone="neutral">{faultSentence(error)}</Notice>}
      {error === null && data === undefined && <p className={styles.none}>Comparing…</p>}
      {data !== undefined && <PreviewFigures preview={data} />}
    </section>
  );
}

function PreviewFigures({ preview }: { readonly preview: Preview }) {
  const { keys, keysWouldBeLimited, requests, wasLimited, wouldBeLimited } = preview;
  return (
    <>
      <p>
        {requests === 0
          ? `No requests by the ${counted(keys, 'key')} under this plan.`
          : `${formatNumber(wouldBeLimited)} of ${counted(requests, 'request')} would have been limited; ${formatNumber(wasLimited)} were. It concerns ${formatNumber(keysWouldBeLimited)} of ${counted(keys, 'key')}.`}
        {preview.costsIgnored && ' Costs are left out: each request counts as 1.'}
      </p>
      <Caveats limits={preview.limits} />
      {preview.worst.length > 0 && (
        <KeyFigures
          name="Keys that would have been limited most"
          heads={['Requests', 'Limited', 'Would have been limited']}
          keys={preview.worst.slice(0, MOST_KEYS).map((key) => ({
            id: key.consumerApiKeyId,
            name: key.name,
            figures: [key.requests, key.wasLimited, key.wouldBeLimited],
          }))}
        />
      )}
    </>
  );
}

/** The limits about which usage by hour says too little. */
function Caveats({ limits }: Pick<Preview, 'limits'>) {
  const words = (quality: string) =>
    limits
      .filter((limit) => limit.quality === quality)
      .map(rateWords)
      .join(', ');
  const [atLeast, unknown] = [words('at-least'), words('unknown')];
  if (atLeast === '' && unknown === '') return null;
  return (
    <p className={styles.none}>
      {atLeast !== '' && `Usage is kept by hour: ${atLeast} would have limited more than this. `}
      {unknown !== '' && `Left out, because usage does not say which requests count: ${unknown}. `}
      To know, add such a limit in shadow mode first: it counts what it would reject, and rejects nothing.
    </p>
  );
}

/** The rest would push the button that saves out of sight. */
const MOST_KEYS = 5;
