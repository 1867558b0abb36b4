import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { hasEnded } from './support/end-child.ts';
import { hasRoom, isOpenToAll, scratchFolder } from './support/scratch-folder.ts';
import { until } from './support/until.ts';

// `npm test`: runs Jest with these arguments in folders of this run, and leaves neither a process nor a file, however the run ends.

const ROOT = resolve(import.meta.dirname, '..');
const CACHE = join(ROOT, 'node_modules/.cache');
const JEST = join(ROOT, 'node_modules/jest/bin/jest.js');
const NODE_FLAGS = [
  '--max-semi-space-size=64',
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
];
// Not on the PATH of an ordinary user there.
const SERVERS_OF_DEBIAN = ['/usr/sbin', '/sbin'];
const NEEDED_BYTES = 1024 ** 3;
const END_DEADLINE_MS = 15_000;

// Files that a test makes for another user of the machine have the usual modes.
process.umask(0o022);
const folders = await makeFolders();
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const jest = spawn(process.execPath, [...NODE_FLAGS, JEST, ...process.argv.slice(2)], {
  cwd: ROOT,
  // A session that everything it starts belongs to. Ctrl-C reaches only this process, which passes it on.
  detached: true,
  stdio: 'inherit',
  env: {
    ...process.env,
    PATH: [process.env.PATH, ...SERVERS_OF_DEBIAN].join(delimiter),
    TMPDIR: folders.temporary,
    TEST_SCRATCH_FOLDER: folders.scratch,
    ...loopbackWithoutProxy(),
  },
});
let received: NodeJS.Signals | undefined;
for (const signal of signals) {
  process.on(signal, () => {
    received ??= signal;
    if (!hasEnded(jest)) jest.kill(signal);
  });
}
const [code] = await once(jest, 'exit');
await endWhatRuns(jest.pid ?? 0);
await Promise.all(Object.values(folders).map((folder) => rm(folder, { recursive: true, force: true })));
process.exitCode = received === undefined ? (code ?? 1) : 128 + constants.signals[received];

/** Where the tests keep files: `temporary` with programs among them, `scratch` for thousands that others may have to reach. */
async function makeFolders(): Promise<{ readonly temporary: string; readonly scratch: string }> {
  await mkdir(CACHE, { recursive: true });
  const candidates = [tmpdir(), '/var/tmp', CACHE];
  const suits = await Promise.all(candidates.map(isSuitable));
  const temporary = await mkdtemp(
    join(candidates.find((_, index) => suits[index]) ?? CACHE, 'tollgate-tests-'),
  );
  const scratch = await mkdtemp(join(await scratchFolder(), 'tollgate-tests-'));
  await Promise.all([temporary, scratch].map((folder) => chmod(folder, 0o711)));
  return { temporary, scratch };
}

/** Root starts some programs as other users, which have to reach their files. */
async function isSuitable(folder: string): Promise<boolean> {
  return (await hasRoom(folder, NEEDED_BYTES)) && (process.getuid?.() !== 0 || (await isOpenToAll(folder)));
}

/** A proxy of the environment is for what is installed, not for servers of the tests. */
function loopbackWithoutProxy(): Readonly<Record<'NO_PROXY' | 'no_proxy', string>> {
  const given = process.env.NO_PROXY ?? process.env.no_proxy;
  const list = ['127.0.0.1', 'localhost', '::1', ...(given === undefined ? [] : [given])].join(',');
  return { NO_PROXY: list, no_proxy: list };
}

/** Kills what is left of the session of Jest, and what was started with the folder of this run. */
async function endWhatRuns(session: number): Promise<void> {
  await until(
    () => {
      const left = runningProcesses().filter((pid) => belongsToRun(pid, session));
      for (const pid of left) kill(pid);
      return left.length === 0;
    },
    { timeoutMs: END_DEADLINE_MS },
  );
}

function runningProcesses(): readonly number[] {
  return globSync('/proc/[0-9]*').map((path) => Number(path.slice('/proc/'.length)));
}

function belongsToRun(pid: number, session: number): boolean {
  try {
    // After the name in brackets: state, parent, group, session.
    const [state, , , its] = (readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1) ?? '').split(
      ' ',
    );
    if (state === 'Z' || pid === process.pid) return false;
    if (Number(its) === session) return true;
    return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`TMPDIR=${folders.temporary}\0`);
  } catch {
    // It has ended, or belongs to another user.
    return false;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
