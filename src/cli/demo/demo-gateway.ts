import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Gateway } from '../../app/ops/ops-port.ts';
import { startSingleProcess } from '../../app/single-process.ts';
import { createManagementClient, type ManagementClient } from '../../client/management-client.ts';
import type { Clock } from '../../platform/clock.ts';
import { createLogger } from '../../platform/logger.ts';
import { systemRandom } from '../../platform/random.ts';
import { readSettings, type Settings } from '../../settings/settings.ts';
import { CommandFault } from '../command-fault.ts';
import { createSampleBackend } from '../sample-backend.ts';
import type { Terminal } from '../terminal.ts';

/** A gateway on loopback with embedded stores, in front of a sample backend. */
export interface DemoGateway {
  readonly url: string;
  readonly opsUrl: string;
  readonly rootToken: string;
  /** The management interface, with the root token. */
  readonly client: ManagementClient;
  /** Resolves when everything is stopped and the stored data is removed. */
  stop(): Promise<void>;
}

/**
 * Starts the gateway with PORT, OPS_PORT and LOG_LEVEL of the environment; without them on the usual ports, or on any where those are busy. If it can't start, rejects with a `CommandFault` and leaves
 * nothing behind.
 */
export async function startDemoGateway(
  environment: Terminal['environment'],
  clock: Clock,
): Promise<DemoGateway> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-demo-'));
  const backend = createSampleBackend().listen(0, '127.0.0.1');
  const removeAll = async (): Promise<void> => {
    backend.close();
    backend.closeAllConnections();
    await rm(directory, { recursive: true, force: true });
  };
  const rootToken = systemRandom.bytes(32).toString('base64url');
  try {
    await once(backend, 'listening');
    const ports = await portsOf(environment);
    const settings = settingsOf({ ...environment, ...ports }, { directory, backend, rootToken });
    const gateway = await startGateway(settings, clock);
    const url = `http://127.0.0.1:${gateway.port}`;
    return {
      url,
      opsUrl: `http://127.0.0.1:${gateway.opsPort}`,
      rootToken,
      client: createManagementClient({ url, token: rootToken }),
      stop: async () => {
        await gateway.stop();
        await removeAll();
      },
    };
  } catch (error) {
    await removeAll();
    throw error;
  }
}

/** A second demo beside the first gets other ports, unless the environment names them. */
async function portsOf(environment: Terminal['environment']) {
  return {
    PORT: environment.PORT ?? ((await isFree(8080)) ? '8080' : '0'),
    OPS_PORT: environment.OPS_PORT ?? ((await isFree(9090)) ? '9090' : '0'),
  };
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

function settingsOf(
  environment: Terminal['environment'] & { readonly PORT: string; readonly OPS_PORT: string },
  { directory, backend, rootToken }: { directory: string; backend: Server; rootToken: string },
): Settings {
  return readSettings({
    BACKEND_URL: `http://127.0.0.1:${(backend.address() as AddressInfo).port}`,
    ROOT_TOKEN: rootToken,
    // Kept nowhere: what it seals is removed at the end.
    ENCRYPTION_KEY: systemRandom.bytes(32).toString('base64'),
    HOST: '127.0.0.1',
    PORT: environment.PORT,
    OPS_PORT: environment.OPS_PORT,
    DATA_DIR: directory,
    LOG_LEVEL: environment.LOG_LEVEL ?? 'warn',
    ENDPOINT_PATTERNS: '/v1/orders/{id},/v1/invoices/{id}',
    // Charts of all keys lag by this much.
    USAGE_FLUSH_MS: '2000',
  });
}

async function startGateway(settings: Settings, clock: Clock): Promise<Gateway> {
  const log = createLogger(settings.logLevel);
  try {
    const gateway = await startSingleProcess(settings, { clock, random: systemRandom, log });
    await gateway.ready();
    return gateway;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFault(
      'fault',
      `The demo could not start: ${reason}\nAre ports ${settings.port} and ${settings.opsPort} free? PORT and OPS_PORT choose others.`,
      { cause: error },
    );
  }
}
