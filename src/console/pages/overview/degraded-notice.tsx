import { Link } from 'wouter';
import { useLive } from '../../api/live.ts';
import { Notice } from '../../components/states/notice.tsx';
import { degradedSentence } from '../system/degraded.ts';

/** Across the page while something does not work. */
export function DegradedNotice() {
  const { data } = useLive(['system'], (client, signal) => client.GET('/tollgate/system', { signal }), {
    scope: 'plans:read',
  });
  if (data === undefined || data.degraded.length === 0) return null;
  return (
    <Notice tone="failed" action={<Link href="/system">System</Link>}>
      {data.degraded.map(degradedSentence).join(' ')}
    </Notice>
  );
}
