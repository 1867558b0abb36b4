import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { requireProgram } from '../../support/debian-package.ts';
import { freePort } from '../../support/free-port.ts';
import { runProgram } from '../../support/running-program.ts';

/** Of `docker-compose.yml`. */
const CONFIGURATION = resolve(import.meta.dirname, '../../../k8s/compose/haproxy.cfg');

/** A replica, as a load balancer knows it. */
export interface BalancedServer {
  readonly port: number;
  readonly opsPort: number;
}

/** A load balancer of a test's own. */
export interface LoadBalancer {
  readonly url: string;
  /** All that it wrote: servers that went and came. */
  output(): string;
  stop(): Promise<void>;
}

/**
 * HAProxy as `docker-compose.yml` runs it, but on loopback, in front of these servers, and with its own interval between health checks.
 * Resolves when it takes connections; whether a server gets any depends on its `/readyz`.
 */
export async function startHaproxy(
  servers: readonly BalancedServer[],
  checkIntervalMs: number,
): Promise<LoadBalancer> {
  const program = await requireProgram('haproxy', 'haproxy');
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-haproxy-'));
  const port = await freePort();
  const file = join(directory, 'haproxy.cfg');
  await writeFile(
    file,
    onLoopback(await readFile(CONFIGURATION, 'utf8'), { servers, port, checkIntervalMs }),
  );
  const { output, stop } = await runProgram({
    ...{ name: 'haproxy', directory, port },
    command: [program, '-db', '-f', file],
  });
  return { url: `http://127.0.0.1:${port}`, output, stop };
}

interface Placement {
  readonly servers: readonly BalancedServer[];
  readonly port: number;
  readonly checkIntervalMs: number;
}

/** The configuration with its addresses replaced, and without what only Docker or Prometheus needs. Throws where it has changed too much for that. */
function onLoopback(configuration: string, { servers, port, checkIntervalMs }: Placement): string {
  const lines = servers.map(
    (server, index) => `  server gateway${index} 127.0.0.1:${server.port} check port ${server.opsPort}`,
  );
  const replacements: readonly (readonly [RegExp, string])[] = [
    [/^resolvers docker\n(?: .*\n|\n)+/m, ''],
    [/^# Management,[\s\S]*/m, ''],
    [/^ {2}bind :8080$/m, `  bind 127.0.0.1:${port}`],
    [/check port 9090 inter 1s/, `check inter ${checkIntervalMs}ms`],
    [/^ {2}server-template .*$/m, lines.join('\n')],
  ];
  return replacements.reduce((text, [pattern, replacement]) => {
    if (!pattern.test(text)) throw new Error(`haproxy.cfg has nothing like ${pattern}`);
    return text.replace(pattern, replacement);
  }, configuration);
}
