import { counter, gauge, labelled, type Reading } from '../../observability/reading.ts';
import type { Proxy as ProxiedSide } from '../../proxy/pipeline.ts';

/** The metrics of the proxied side; `backendConnections` is `BACKEND_CONNECTIONS`. */
export function backendReadings(proxy: ProxiedSide, backendConnections: number): readonly Reading[] {
  return [
    gauge('tollgate_requests_in_flight', 'Proxied requests that are being served now.', () => proxy.inFlight),
    gauge(
      'tollgate_upgrades_open',
      'Upgraded connections (WebSockets) that are open now.',
      () => proxy.backendLoad.tunnels,
    ),
    counter(
      'tollgate_backend_connections_opened_total',
      'Connections to the backend that were opened, those of upgrades included.',
      () => proxy.backendConnects,
    ),
    gauge(
      'tollgate_backend_connections_limit',
      'Most requests that may be with the backend at the same time: BACKEND_CONNECTIONS.',
      () => backendConnections,
    ),
    gauge(
      'tollgate_backend_requests_in_use',
      'Requests that are with the backend now.',
      () => proxy.backendLoad.busy,
    ),
    gauge(
      'tollgate_backend_requests_queued',
      'Requests that wait for a backend connection now.',
      () => proxy.backendLoad.waiting,
    ),
    ...rejectionReadings(proxy.counters),
  ];
}

/** The requests that the proxied side ended to protect others: without a free backend connection, or with a body that is too slow. */
function rejectionReadings({ overloaded, tooSlow }: ProxiedSide['counters']): readonly Reading[] {
  const { request, upgrade } = overloaded;
  return [
    counter(
      'tollgate_backend_rejections_total',
      'Requests rejected with 503 because no backend connection was free: for any key (full), or for this one (key_full).',
      () => [
        [{ kind: 'request', reason: 'full' }, request.full],
        [{ kind: 'request', reason: 'key_full' }, request.key_full],
        [{ kind: 'upgrade', reason: 'full' }, upgrade.full],
        [{ kind: 'upgrade', reason: 'key_full' }, upgrade.key_full],
      ],
    ),
    counter(
      'tollgate_slow_bodies_total',
      'Requests ended because their body, or that of the response, passed more slowly than the minimum rate.',
      () => labelled('direction', tooSlow),
    ),
  ];
}
