import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from '@jest/globals';
import { Admin } from '../../support/admin.ts';
import { gatewaySettings, type RunningGateway } from '../../support/gateway.ts';
import { startInProcess } from '../../support/in-process-gateway.ts';
import { createMigratedDatabase, type TestDatabase, testRedisUrl } from '../../support/stores.ts';

/** A gateway in front of a backend. */
export interface ClientStage {
  readonly gateway: RunningGateway;
  readonly admin: Admin;
  /** A key without a plan of its own. */
  readonly key: { readonly id: string; readonly secret: string };
  readonly backend: Server;
  /** What the gateway was started with. */
  readonly environment: Readonly<Record<string, string>>;
  /** What the backend does with requests from now on. */
  respond(listener: RequestListener): void;
}

/** Gives the calling file a gateway with real stores, as clients meet it. */
export function withClientStage(settings: Readonly<Record<string, string>> = {}): ClientStage {
  let listener: RequestListener = (_req, res) => void res.end('ok');
  const backend = createServer((req, res) => listener(req, res));
  const stage: { -readonly [Part in keyof ClientStage]?: ClientStage[Part] } = {
    backend,
    respond: (next) => {
      listener = next;
    },
  };
  let database: TestDatabase | undefined;

  beforeAll(async () => {
    database = await createMigratedDatabase();
    backend.listen(0, '127.0.0.1');
    await once(backend, 'listening');
    stage.environment = {
      ...gatewaySettings(
        `http://127.0.0.1:${(backend.address() as AddressInfo).port}`,
        database.url,
        testRedisUrl(),
      ),
      ...settings,
    };
    stage.gateway = await startInProcess(stage.environment);
    stage.admin = new Admin(stage.gateway.url);
    stage.key = await stage.admin.makeKey('client');
  });

  afterAll(async () => {
    await stage.gateway?.stop();
    backend.close();
    backend.closeAllConnections();
    await database?.drop();
  });
  return stage as ClientStage;
}
