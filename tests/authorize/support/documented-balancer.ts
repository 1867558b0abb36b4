import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BalancedServer } from '../../reliability/support/haproxy.ts';
import { requireProgram } from '../../support/debian-package.ts';
import { documentedBlocks } from '../../support/documented-commands.ts';
import { freePort } from '../../support/free-port.ts';
import { type RunningProgram, runProgram } from '../../support/running-program.ts';

/** HAProxy in front of the ports for other gateways, as docs/authorize.md shows it, with the interval of checks of the test. */
export async function startDocumentedBalancer(
  replicas: readonly BalancedServer[],
  checkIntervalMs: number,
): Promise<RunningProgram> {
  const blocks = await documentedBlocks('authorize.md');
  const text = blocks.find(({ headings }) => headings.includes('### Several replicas'))?.text ?? '';
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-balancer-'));
  const port = await freePort();
  const servers = replicas.map(
    (replica, index) => `    server replica${index} 127.0.0.1:${replica.port} port ${replica.opsPort}\n`,
  );
  const own = text
    .replace('127.0.0.1:8082', `127.0.0.1:${port}`)
    .replace('inter 1s', `inter ${checkIntervalMs}ms`)
    .replace(/(?:^ *server replica.*\n)+/m, servers.join(''));
  const file = join(directory, 'haproxy.cfg');
  await writeFile(file, own);
  const command = [await requireProgram('haproxy', 'haproxy'), '-db', '-f', file];
  return runProgram({ name: 'HAProxy', directory, port, command });
}
