import type { IncomingMessage, ServerResponse } from 'node:http';
import { DOWNLOAD_RATE, type MinimumRate, UPLOAD_RATE } from '../http/minimum-body-rate.ts';
import type { RequestIds } from '../http/request-id.ts';
import type { SelfServiceApp } from '../management/self-service/self-service-app.ts';
import type { Proxy as ProxiedSide } from '../proxy/pipeline.ts';
import type { ClientTimeouts } from '../server/connections/client-timeouts.ts';
import { createPublicServer, type PublicServer, type PublicServerOptions } from '../server/public-server.ts';
import type { ClientLimits } from './client-limits.ts';
import { listenAt } from './listen.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from './replica-context.ts';
import type { RequestObservers } from './request-observers.ts';

/** What the ports serve. */
export interface ListenerParts {
  readonly proxy: ProxiedSide;
  readonly management: (req: IncomingMessage, res: ServerResponse) => void;
  /** Null if there is no self-service. */
  readonly selfService: SelfServiceApp | null;
  readonly observers: Pick<RequestObservers, 'rejected' | 'selfServed'>;
  readonly requestIds: RequestIds;
  readonly connectionLimits: ClientLimits;
  readonly timeouts?: ClientTimeouts | undefined;
  readonly uploadRate?: MinimumRate | undefined;
  readonly downloadRate?: MinimumRate | undefined;
}

/** The open ports. */
export interface Listeners {
  readonly port: number;
  /** Null if management is on `port`. */
  readonly adminPort: number | null;
  /** From now on every response has `Connection: close`. */
  announceClose(): void;
}

/** Opens `ADMIN_PORT`, if it is set, and then `PORT`. Rejects if one can't be opened. */
export async function openListeners(
  { settings, lifecycle, platform: { clock } }: ReplicaContext,
  { proxy, management, selfService, observers, requestIds, connectionLimits, ...parts }: ListenerParts,
): Promise<Listeners> {
  const { host, port, adminPort, shutdownDrainMs } = settings;
  const { uploadRate = { ...UPLOAD_RATE, bytesPerSecond: settings.requestBodyMinBytesPerSecond } } = parts;
  const { downloadRate = { ...DOWNLOAD_RATE, bytesPerSecond: settings.responseBodyMinBytesPerSecond } } =
    parts;
  const common = {
    ...{ requestIds, timeouts: parts.timeouts, uploadRate, downloadRate, clock },
    sharesPort: settings.workers > 1,
    onTooSlow: proxy.counters.onTooSlow,
  };
  // Both ports drain at the same time: a shutdown with ADMIN_PORT takes no longer than one without.
  const listening: PublicServer[] = [];
  lifecycle.add('ports', shutdownDrainMs + CLOSE_DEADLINE_MS, async () => {
    await Promise.all(listening.map((server) => server.close(shutdownDrainMs)));
  });
  const listen = async (server: PublicServer, portSetting: 'PORT' | 'ADMIN_PORT'): Promise<number> => {
    const wanted = portSetting === 'PORT' ? port : (adminPort ?? 0);
    const place = { port: wanted, host, portSetting, hostSetting: 'HOST' } as const;
    const address = await listenAt(place, (at, on) => server.listen(at, on));
    listening.push(server);
    return address.port;
  };

  return {
    adminPort:
      adminPort === null
        ? null
        : await listen(
            createPublicServer({ ...common, management, connectionLimit: connectionLimits.admin }),
            'ADMIN_PORT',
          ),
    port: await listen(
      createPublicServer({
        ...common,
        proxied: proxy,
        connectionLimit: connectionLimits.public,
        onRejected: observers.rejected,
        ...(adminPort === null && { management }),
        ...(selfService !== null && { selfService: selfServiceOn(proxy, selfService, observers) }),
      }),
      'PORT',
    ),
    announceClose: () => {
      for (const server of listening) server.announceClose();
    },
  };
}

/** The proxied side authenticates the key; the app responds. */
function selfServiceOn(
  proxy: ProxiedSide,
  app: SelfServiceApp,
  observers: Pick<RequestObservers, 'selfServed'>,
): NonNullable<PublicServerOptions['selfService']> {
  const serve = proxy.selfService({
    faultOf: ({ method = '' }, { path }) => app.faultOf(method, path),
    serve: app.serve,
    observe: (summary) => observers.selfServed(summary, app.operationOf(summary.method, summary.path)),
  });
  return { path: app.path, serve };
}
