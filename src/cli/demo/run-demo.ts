import { once } from 'node:events';
import type { Terminal } from '../terminal.ts';
import { DemoClock } from './demo-clock.ts';
import { createConsumers } from './demo-consumers.ts';
import { liveThroughDay, PAST_MS } from './demo-day.ts';
import { type DemoGateway, startDemoGateway } from './demo-gateway.ts';
import { demonstrateRateLimit } from './demo-rate-limit.ts';
import { createDemoPlan, createDemoPlans, createDemoToken, createKey } from './demo-records.ts';
import { startTraffic } from './demo-traffic.ts';

/**
 * Runs the demo on one machine with nothing installed: embedded stores in a directory that is removed at the end, a sample backend, and a
 * plan and a key made through the management interface. With `stays` it then shows the console with live traffic until SIGINT, SIGTERM or SIGHUP.
 * Rejects with a `CommandFault` if the gateway could not start or a request did not get the expected status.
 */
export async function runDemo(terminal: Terminal, { stays }: { readonly stays: boolean }): Promise<void> {
  const stopping = stopSignal();
  const clock = new DemoClock(stays ? PAST_MS : 0);
  const gateway = await startDemoGateway(terminal.environment, clock);
  try {
    await createDemoPlan(gateway.client);
    terminal.stdout.write(`\n${await demonstrateRateLimit(gateway)}\n`);
    if (stays) await showLiveGateway(gateway, { terminal, clock, stopping });
    else terminal.stdout.write(`${ENDS_AT_ONCE}\n`);
  } finally {
    await gateway.stop();
  }
}

const ENDS_AT_ONCE = `The output is not a terminal: the demo ends here and removes what it stored.
"npm run demo -- --stay" goes on, with the console and live traffic.`;

/** A terminal and npm both send SIGINT to this process: the second signal must not interrupt the clean-up. */
function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stopping.abort());
  return stopping.signal;
}

interface Show {
  readonly terminal: Terminal;
  readonly clock: DemoClock;
  readonly stopping: AbortSignal;
}

async function showLiveGateway(gateway: DemoGateway, { terminal: { stdout }, clock, stopping }: Show) {
  await createDemoPlans(gateway.client);
  const consumers = await createConsumers(gateway.client, clock);
  stdout.write('A few made-up consumers live through a day, so that the console has something to show …\n\n');
  await liveThroughDay({ url: gateway.url, stopping }, consumers, clock);
  if (stopping.aborted) return;
  const traffic = startTraffic(gateway.url, consumers);
  try {
    const key = await createKey(gateway.client, { name: 'Your first key', rateLimitId: 'demo' });
    const token = await createDemoToken(gateway.client, clock);
    stdout.write(linesToTry(gateway, key, token));
    if (!stopping.aborted) await once(stopping, 'abort');
  } finally {
    await traffic.stop();
  }
}

function linesToTry(
  { url, opsUrl, rootToken }: DemoGateway,
  key: { readonly id: string; readonly secret: string },
  readOnlyToken: string,
): string {
  return `The console, with live traffic of a few made-up consumers
  ${url}/tollgate/console
  Sign in with this token. It may read everything and change nothing, and is valid for a day:
  ${readOnlyToken}

Or with curl. With a key: 200 five times, then 429
  for i in 1 2 3 4 5 6; do curl -sS -w '%{http_code}\\n' -H 'Authorization: Bearer ${key.secret}' ${url}/hello; done

Without a key: 401
  curl -sS -w '\\n%{http_code}\\n' ${url}/hello

What the key was used for
  curl -sS -H 'Authorization: Bearer ${rootToken}' ${url}/consumer-api-key/${key.id}

The limits in the headers of the response, and the metrics
  curl -sSi -H 'Authorization: Bearer ${key.secret}' ${url}/hello
  curl -sS ${opsUrl}/metrics

The root token may do everything, in the console too
  ${rootToken}

Ctrl-C stops it and removes what it stored.
`;
}
