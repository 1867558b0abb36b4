import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endChild } from '../support/end-child.ts';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const START_DEADLINE_MS = 120_000;
const TOKEN = 'kube-apiserver-of-a-test';

/** A real API server over a real etcd, without the controllers and nodes of a cluster: objects are checked and kept, nothing runs. */
export interface KubeApiserver {
  /** Runs kubectl; resolves with what it printed, rejects with its standard error. A warning of the server is an error. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  stop(): Promise<void>;
}

/** `assets` is a directory with `etcd`, `kube-apiserver` and `kubectl`, as setup-envtest installs them. */
export async function startKubeApiserver(assets: string): Promise<KubeApiserver> {
  const programs = { etcd: join(assets, 'etcd'), apiserver: join(assets, 'kube-apiserver') };
  const kubectl = join(assets, 'kubectl');
  await Promise.all([programs.etcd, programs.apiserver, kubectl].map((program) => access(program)));
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-kube-'));
  const children: ChildProcess[] = [];
  const stop = async () => {
    for (const child of children.toReversed()) await endChild(child);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const etcdUrl = await startEtcd(programs.etcd, directory, children);
    const port = await startServer(programs.apiserver, { directory, etcdUrl, children });
    const connection = [
      `--server=https://127.0.0.1:${port}`,
      '--insecure-skip-tls-verify',
      `--token=${TOKEN}`,
    ];
    const server: KubeApiserver = {
      kubectl: async (args, input) => {
        const started = run(kubectl, [...connection, '--warnings-as-errors', ...args], {
          env: { HOME: directory, PATH: process.env.PATH },
          maxBuffer: 64 * 1024 * 1024,
        });
        started.child.stdin?.end(input ?? '');
        return (await started).stdout;
      },
      stop,
    };
    await until(() => isReady(server, children), { timeoutMs: START_DEADLINE_MS });
    return server;
  } catch (error) {
    await stop();
    throw error;
  }
}

async function isReady({ kubectl }: KubeApiserver, children: readonly ChildProcess[]): Promise<boolean> {
  const ended = children.find(({ exitCode }) => exitCode !== null);
  if (ended !== undefined) throw new Error(`${ended.spawnfile} ended with code ${ended.exitCode}`);
  return kubectl(['get', '--raw', '/readyz']).then(
    (text) => text === 'ok',
    () => false,
  );
}

async function startEtcd(program: string, directory: string, children: ChildProcess[]): Promise<string> {
  const [url, peerUrl] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
  children.push(
    spawn(
      program,
      [
        `--data-dir=${join(directory, 'etcd')}`,
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=default=${peerUrl}`,
        '--unsafe-no-fsync',
      ],
      { stdio: 'ignore' },
    ),
  );
  return url;
}

async function startServer(
  program: string,
  {
    directory,
    etcdUrl,
    children,
  }: { readonly directory: string; readonly etcdUrl: string; readonly children: ChildProcess[] },
): Promise<number> {
  const port = await freePort();
  const [keyFile, tokenFile] = [join(directory, 'service-accounts.pem'), join(directory, 'tokens.csv')];
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await writeFile(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  await writeFile(tokenFile, `${TOKEN},admin,admin,system:masters\n`);
  children.push(
    spawn(
      program,
      [
        `--etcd-servers=${etcdUrl}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${port}`,
        `--cert-dir=${join(directory, 'certificates')}`,
        `--token-auth-file=${tokenFile}`,
        '--authorization-mode=RBAC',
        '--service-account-issuer=https://kubernetes.default.svc',
        `--service-account-signing-key-file=${keyFile}`,
        `--service-account-key-file=${keyFile}`,
        '--service-cluster-ip-range=10.0.0.0/24',
      ],
      { stdio: 'ignore' },
    ),
  );
  return port;
}
