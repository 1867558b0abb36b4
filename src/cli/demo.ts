import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSingleProcess } from '../app/single-process.ts';
import { readSettings } from '../config/settings.ts';
import { systemClock } from '../platform/clock.ts';
import { createLogger } from '../platform/logger.ts';
import { systemRandom } from '../platform/random.ts';
import { createSampleBackend } from './sample-backend.ts';

/**
 * The main job, on one machine with nothing installed: embedded stores in a directory that is removed at the end, a sample backend, and a plan
 * and a key made through the real management API. Runs until Ctrl-C.
 */
const directory = await mkdtemp(join(tmpdir(), 'tollgate-demo-'));
const backend = createSampleBackend().listen(0, '127.0.0.1');
await new Promise((resolve) => backend.once('listening', resolve));
const rootToken = systemRandom.bytes(32).toString('base64url');
const settings = readSettings({
  BACKEND_URL: `http://127.0.0.1:${(backend.address() as AddressInfo).port}`,
  ROOT_TOKEN: rootToken,
  HOST: '127.0.0.1',
  PORT: process.env.PORT ?? '8080',
  OPS_PORT: process.env.OPS_PORT ?? '9090',
  DATA_DIR: directory,
  LOG_LEVEL: process.env.LOG_LEVEL ?? 'warn',
});
const service = await startSingleProcess(settings, {
  clock: systemClock,
  random: systemRandom,
  log: createLogger(settings.logLevel),
}).catch(async (error: unknown) => {
  await rm(directory, { recursive: true, force: true });
  const reason = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    `The demo could not start: ${reason}\nAre ports ${settings.port} and ${settings.opsPort} free? PORT and OPS_PORT choose others.\n`,
  );
  process.exit(1);
});
await service.ready();
const base = `http://127.0.0.1:${service.port}`;

await manage('/rate-limit/create', {
  rateLimitId: 'demo',
  description: 'Five requests per minute',
  limit: 5,
  period: 'minute',
});
const key = await manage('/consumer-api-key/create', { name: 'demo key' });
await manage('/api-keys/apply-rate-limit', { consumerApiKeyId: String(key.id), rateLimitId: 'demo' });

process.stdout.write(`
Tollgate runs at ${base}, in front of a sample backend. Its plan "demo" allows 5 requests per minute.

With the key: 200 five times, then 429
  for i in 1 2 3 4 5 6; do curl -sS -w '%{http_code}\\n' -H 'Authorization: Bearer ${String(key.secret)}' ${base}/hello; done

Without a key: 401
  curl -sS -w '\\n%{http_code}\\n' ${base}/hello

What the key was used for
  curl -sS -H 'Authorization: Bearer ${rootToken}' ${base}/consumer-api-key/${String(key.id)}

The limits in the response's header fields, and the metrics
  curl -sSi -H 'Authorization: Bearer ${String(key.secret)}' ${base}/hello
  curl -sS http://127.0.0.1:${service.opsPort}/metrics

Ctrl-C stops it and removes what it stored.
`);

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    await service.stop();
    backend.close();
    await rm(directory, { recursive: true, force: true });
    process.exit(0);
  });
}

async function manage(path: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${rootToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.status !== 201 && response.status !== 200)
    throw new Error(`${path} responded with ${response.status}: ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}
