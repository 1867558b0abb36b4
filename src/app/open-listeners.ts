import type { IncomingMessage, ServerResponse } from 'node:http';
import { DOWNLOAD_RATE, type MinimumRate, UPLOAD_RATE } from '../http/minimum-body-rate.ts';
import type { RequestIds } from '../http/request-id.ts';
import type { HandoverApp } from '../management/handovers/handover-app.ts';
import type { SelfServiceApp } from '../management/self-service/self-service-app.ts';
import { isAtOrBelow, PORTAL_PATH } from '../paths/path-matcher.ts';
import type { Proxy as ProxiedSide } from '../proxy/pipeline.ts';
import { CLIENT_TIMEOUTS, type ClientTimeouts } from '../server/connections/client-timeouts.ts';
import { REQUEST_HEAD_LIMIT_BYTES } from '../server/parsing/head-limits.ts';
import { createPublicServer, type PublicServer, type PublicServerOptions } from '../server/public-server.ts';
import type { ClientLimits } from './client-limits.ts';
import { listenAt, type Place } from './listen.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from './replica-context.ts';
import type { RequestObservers } from './request-observers.ts';
import type { WiredAuthorize } from './wiring/wire-authorize.ts';

/** What the ports serve. */
export interface ListenerParts {
  readonly proxy: ProxiedSide;
  readonly management: (req: IncomingMessage, res: ServerResponse) => void;
  /** Null if there is no self-service. */
  readonly selfService: SelfServiceApp | null;
  /** Null without self-service. */
  readonly handovers?: HandoverApp | null;
  /** The consumers' portal; undefined without it. */
  readonly portal?: ((req: IncomingMessage, res: ServerResponse) => void) | undefined;
  /** Undefined if no other gateway asks for decisions. */
  readonly authorize?: Pick<WiredAuthorize, 'traffic'> | undefined;
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
  /** Null if no other gateway asks for decisions. */
  readonly authorizePort: number | null;
  /** From now on every response has `Connection: close`. */
  announceClose(): void;
}

/** Opens `ADMIN_PORT` and `AUTHORIZE_PORT`, if they are set, and then `PORT`. Rejects if one can't be opened. */
export async function openListeners(context: ReplicaContext, parts: ListenerParts): Promise<Listeners> {
  const { settings, shutdown } = context;
  const { proxy, management, selfService, connectionLimits } = parts;
  const { host, port, adminPort, shutdownDrainMs } = settings;
  const common = commonOptions(context, parts);
  // All ports drain at the same time: a shutdown with ADMIN_PORT takes no longer than one without.
  const listening: PublicServer[] = [];
  shutdown.add('ports', shutdownDrainMs + CLOSE_DEADLINE_MS, async () => {
    await Promise.all(listening.map((server) => server.close(shutdownDrainMs)));
  });
  const listen: Listen = async (place, options) => {
    const server = createPublicServer(options);
    const address = await listenAt({ host, hostSetting: 'HOST', ...place }, (at, on) =>
      server.listen(at, on),
    );
    listening.push(server);
    return address.port;
  };

  const admin: PublicServerOptions = {
    ...common,
    management,
    connectionLimit: connectionLimits.admin,
    onRejected: (error, requestId) => parts.observers.rejected(error, requestId, 'management'),
  };
  const clients = {
    ...common,
    proxied: proxy,
    connectionLimit: connectionLimits.public,
    onRejected: parts.observers.rejected,
    ...(adminPort === null && { management }),
    ...(selfService !== null && { selfService: selfServiceOn(parts, selfService) }),
  };
  return {
    adminPort:
      adminPort === null ? null : await listen({ port: adminPort, portSetting: 'ADMIN_PORT' }, admin),
    authorizePort: await openAuthorizePort(context, parts, listen),
    port: await listen({ port, portSetting: 'PORT' }, clients),
    announceClose: () => {
      for (const server of listening) server.announceClose();
    },
  };
}

type Listen = (
  place: Pick<Place, 'port' | 'portSetting'> & Partial<Place>,
  options: PublicServerOptions,
) => Promise<number>;

/** Opens the port for other gateways, if there is one. Its clients are as little trusted as those of the public port. */
async function openAuthorizePort(
  context: ReplicaContext,
  parts: ListenerParts,
  listen: Listen,
): Promise<number | null> {
  const { authorizePort: port, authorizeHost: host } = context.settings;
  const traffic = parts.authorize?.traffic(parts.management);
  if (port === null || traffic === undefined) return null;
  return listen(
    { port, host, portSetting: 'AUTHORIZE_PORT', hostSetting: 'AUTHORIZE_HOST' },
    {
      ...commonOptions(context, parts),
      proxied: traffic,
      formatRejection: traffic.formatRejection,
      parsedHeadBytes: 4 * REQUEST_HEAD_LIMIT_BYTES,
      connectionLimit: parts.connectionLimits.authorize,
      onRejected: (error, requestId) => parts.observers.rejected(error, requestId, 'authorize'),
    },
  );
}

/** The options of all ports. */
function commonOptions(
  { settings, platform: { clock } }: ReplicaContext,
  { proxy, requestIds, timeouts, uploadRate, downloadRate }: ListenerParts,
) {
  const { keepAliveMs, requestBodyMinBytesPerSecond, responseBodyMinBytesPerSecond, workers } = settings;
  return {
    requestIds,
    timeouts: timeouts ?? { ...CLIENT_TIMEOUTS, keepAliveMs },
    uploadRate: uploadRate ?? { ...UPLOAD_RATE, bytesPerSecond: requestBodyMinBytesPerSecond },
    downloadRate: downloadRate ?? { ...DOWNLOAD_RATE, bytesPerSecond: responseBodyMinBytesPerSecond },
    clock,
    sharesPort: workers > 1,
    onTooSlow: proxy.counters.onTooSlow,
  };
}

/** The proxied side authenticates the key; the app responds. Links and the portal's files need no key. */
function selfServiceOn(
  { proxy, handovers, portal, observers }: ListenerParts,
  app: SelfServiceApp,
): NonNullable<PublicServerOptions['selfService']> {
  const serve = proxy.selfService({
    faultOf: ({ method = '' }, { path }) => app.faultOf(method, path),
    serve: app.serve,
    observe: (summary) => observers.selfServed(summary, app.operationOf(summary.method, summary.path)),
  });
  const pageAt = (path: string) => {
    if (!isAtOrBelow(path, app.path)) return portal;
    return handovers && isAtOrBelow(path, handovers.path) ? handovers.serve : undefined;
  };
  return {
    paths: portal === undefined ? [app.path] : [app.path, PORTAL_PATH],
    serve(req, res, head) {
      const page = pageAt(head.path);
      if (page === undefined) return serve(req, res, head);
      req.url = head.target;
      page(req, res);
    },
  };
}
