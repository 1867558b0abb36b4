import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requireProgram } from '../../support/debian-package.ts';
import { documentedBlocks } from '../../support/documented-commands.ts';
import { freePort } from '../../support/free-port.ts';
import { type RunningProgram, runProgram } from '../../support/running-program.ts';
import { findEnvoy } from './envoy.ts';

/** What a gateway stands between. */
export interface Neighbours {
  /** Of the port for other gateways. */
  readonly tollgatePort: number;
  readonly backendPort: number;
  /** Requests go through while Tollgate is away, as the page says how. */
  readonly failsOpen?: boolean;
  /** The address of a balancer in front of the gateway, as the page says how. */
  readonly balancer?: string;
}

interface Kind {
  readonly heading: string;
  /** The line below which the page puts what is needed behind a balancer, and the language of that block. */
  readonly behindBalancer?: { readonly below: string; readonly language: string };
  /** The files to write, from the blocks of the page, and the command that runs them. */
  readonly files: (blocks: readonly string[], failsOpen: boolean) => Readonly<Record<string, string>>;
  readonly command: (directory: string) => Promise<readonly string[]>;
}

const at = (blocks: readonly string[], index: number): string => blocks[index] ?? '';

const KINDS = {
  nginx: {
    heading: '### nginx',
    behindBalancer: { below: 'listen 8000;', language: 'nginx' },
    files: (blocks, failsOpen) => {
      const [inCall = '', beside = ''] = at(blocks, 1).split('\n');
      const server = at(blocks, 0);
      return {
        'tollgate.conf': failsOpen
          ? server
              .replace('internal;', `internal;\n${inCall}`)
              .replace('location @away', `${beside}\nlocation @away`)
          : server,
        'nginx.conf': `daemon off; worker_processes 2; error_log stderr; pid nginx.pid;
          events {} http { access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; include tollgate.conf; }`,
      };
    },
    command: async (directory) => [
      await requireProgram('nginx', 'nginx-light'),
      '-p',
      directory,
      '-c',
      join(directory, 'nginx.conf'),
    ],
  },
  HAProxy: {
    heading: '### HAProxy',
    behindBalancer: { below: 'bind :8000', language: 'haproxy' },
    files: (blocks, failsOpen) => ({
      'haproxy.cfg': at(blocks, 0).replace(/^.*lua\.tollgate/m, (line) =>
        failsOpen ? `${at(blocks, 2)}${line}` : line,
      ),
      'tollgate.lua': at(blocks, 1),
    }),
    command: async (directory) => [
      await requireProgram('haproxy', 'haproxy'),
      '-db',
      '-f',
      join(directory, 'haproxy.cfg'),
    ],
  },
  Caddy: {
    heading: '### Caddy',
    behindBalancer: { below: 'uri /authorize/forwarded?', language: 'caddy' },
    files: (blocks) => ({ Caddyfile: `{\n\tadmin off\n}\n${at(blocks, 0)}` }),
    command: async (directory) => [
      await requireProgram('caddy', 'caddy'),
      'run',
      '--config',
      join(directory, 'Caddyfile'),
    ],
  },
  Envoy: {
    heading: '### Envoy',
    files: (blocks, failsOpen) => ({
      'envoy.yaml': at(blocks, 0).replace('failure_mode_allow: false', `failure_mode_allow: ${failsOpen}`),
    }),
    command: async (directory) => [
      await findEnvoy(),
      ...['-c', join(directory, 'envoy.yaml'), '--concurrency', '1', '--log-level', 'warn'],
      ...['--use-dynamic-base-id', '--disable-hot-restart'],
    ],
  },
} as const satisfies Readonly<Record<string, Kind>>;

export type GatewayKind = keyof typeof KINDS;

export const GATEWAY_KINDS = Object.keys(KINDS) as readonly GatewayKind[];

/** Where a gateway listens, and what it stands between. */
interface Ports extends Neighbours {
  readonly port: number;
}

/** The configuration of nginx that the page shows, for its `http` block. */
export async function documentedServer(ports: Ports): Promise<string> {
  return withPorts(at(await blocksOf('nginx'), 0), ports);
}

async function blocksOf(kind: GatewayKind, balancer?: string): Promise<readonly string[]> {
  const { heading, behindBalancer }: Kind = KINDS[kind];
  const blocks = await documentedBlocks('authorize.md');
  const texts = blocks.filter(({ headings }) => headings.includes(heading)).map(({ text }) => text);
  if (behindBalancer === undefined || balancer === undefined) return texts;
  const { below, language } = behindBalancer;
  const added = blocks.find(
    (block) => block.headings.includes('### Behind a balancer') && block.language === language,
  );
  const lines = added?.text.replace('10.0.0.0/8', balancer) ?? '';
  return texts.map((text) => text.replace(below, () => `${below}\n${lines}`));
}

/** In one pass: a port of the test may begin as one of the page does. */
function withPorts(text: string, { port, tollgatePort, backendPort }: Ports): string {
  const ports: Readonly<Record<string, number>> = { 8000: port, 8082: tollgatePort, 3000: backendPort };
  return text.replace(
    /(127\.0\.0\.1:|port_value: |^\s*listen |^\s*bind :|^:)(8000|8082|3000)\b/gm,
    (_, before: string, shown: string) => `${before}${ports[shown]}`,
  );
}

/** Starts a gateway with the configuration that docs/authorize.md shows. Only the ports and the folder are the test's. */
export async function startFrontGateway(kind: GatewayKind, neighbours: Neighbours): Promise<RunningProgram> {
  const { files, command }: Kind = KINDS[kind];
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-front-'));
  const [port, innerPort] = [await freePort(), await freePort()];
  const texts = files(await blocksOf(kind, neighbours.balancer), neighbours.failsOpen ?? false);
  for (const [name, text] of Object.entries(texts)) {
    const own = withPorts(text, { ...neighbours, port })
      .replaceAll('127.0.0.1:8083', `127.0.0.1:${innerPort}`)
      .replaceAll('/etc/haproxy/', `${directory}/`);
    await writeFile(join(directory, name), own);
  }
  return runProgram({ name: kind, directory, port, command: await command(directory) });
}
