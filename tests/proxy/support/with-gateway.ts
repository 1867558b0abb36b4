import { afterEach, beforeEach, expect } from '@jest/globals';
import { until } from '../../support/until.ts';
import { type GatewaySettings, TestGateway } from './gateway.ts';
import { trustLocalhost } from './localhost-certificate.ts';
import { RawBackend } from './raw-backend.ts';

/** The gateway and the backend of the running test. */
export interface Stage {
  readonly gateway: TestGateway;
  readonly backend: RawBackend;
}

/** What a proxied request meets must be the same wherever management responds: on the same port, or on a separate one. */
export const MANAGEMENT_PORTS: readonly (readonly [string, GatewaySettings])[] = [
  ['management on the same port', { management: (_req, res) => void res.end('management') }],
  ['management on a separate port', {}],
];

/**
 * Gives every test of the calling block its own gateway and backend, and sees to it that none of them leaves anything behind: no request at the
 * backend, no connection, no listening port.
 */
export function withGateway(settings: GatewaySettings = {}, { isTls = false } = {}): Stage {
  const stage: { gateway?: TestGateway; backend?: RawBackend } = {};
  let before = 0;
  let distrust: (() => void) | undefined;
  beforeEach(async () => {
    before = openHandles();
    if (isTls) distrust = trustLocalhost();
    stage.backend = await RawBackend.start({ isTls });
    stage.gateway = await TestGateway.start(stage.backend.url, settings);
  });
  afterEach(async () => {
    const { gateway, backend } = stage;
    for (const client of gateway?.clients ?? []) client.destroy();
    await gateway?.settled();
    await gateway?.stop();
    await backend?.stop();
    distrust?.();
    await until(() => openHandles() <= before);
    expect(openHandles()).toBeLessThanOrEqual(before);
  });
  return stage as Stage;
}

function openHandles(): number {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;
}
