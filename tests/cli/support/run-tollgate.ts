import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { ROOT_TOKEN } from '../../support/gateway.ts';
import { COMMAND, COMMAND_LINE, quoted } from './command-on-path.ts';
import { runInProcess } from './run-in-process.ts';

/** How a run of the command ended. */
export interface EndedCommand {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** In addition to the PATH; nothing else of the tests' own environment is passed on. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Standard input; nothing where it is missing. */
  readonly input?: string;
  /** Standard input comes only once the command has written this; at once where it is missing. */
  readonly prompt?: string;
  /** Options of Node itself. */
  readonly nodeOptions?: readonly string[];
  /** The command; that of this checkout where it is missing. */
  readonly file?: string;
  /** Whether the reader of standard error goes away at once. */
  readonly closesStderr?: boolean;
  /** A line for `sh` that runs the command as `"$@"`, for example with a redirection. */
  readonly shellLine?: string;
  /** Gets the process once it runs, to send it signals. */
  readonly onStart?: (child: ChildProcess) => void;
}

/** A `shellLine`: files can be made, but not written, as on a full disk. */
export const WITH_FULL_DISK = 'ulimit -f 0; exec "$@"';

/** Runs `tollgate` until it ends. */
export async function runTollgate(
  words: readonly string[],
  {
    environment = {},
    input = '',
    nodeOptions = [],
    file = COMMAND,
    closesStderr = false,
    shellLine = 'exec "$@"',
    prompt,
    onStart,
  }: RunOptions = {},
): Promise<EndedCommand> {
  const node = [process.execPath, ...nodeOptions, file, ...words];
  const child = spawn('/bin/sh', ['-c', shellLine, 'sh', ...node], {
    env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  onStart?.(child);
  if (closesStderr) child.stderr.destroy();
  return ended(child, input, prompt);
}

/** Runs `tollgate` on a pseudo terminal of so many columns. What both streams show comes as `stdout`, as the terminal shows both. */
export async function runOnTerminal(
  words: readonly string[],
  {
    environment = {},
    input = '',
    prompt = '',
    columns = 100,
  }: RunOptions & { readonly columns?: number } = {},
): Promise<EndedCommand> {
  const line = [COMMAND_LINE, ...words.map(quoted)].join(' ');
  // -e passes the exit code on.
  const child = spawn('script', ['-qec', `stty cols ${columns} rows 40; ${line}`, '/dev/null'], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: '/nonexistent',
      SHELL: '/bin/sh',
      TERM: 'xterm',
      ...environment,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  return ended(child, input, prompt);
}

/** Runs `tollgate` against one gateway with the root token, and fails where the command does. */
export class Administrator {
  readonly #environment: Readonly<Record<string, string>>;

  constructor(url: string) {
    this.#environment = { TOLLGATE_URL: url, TOLLGATE_TOKEN: ROOT_TOKEN };
  }

  get environment(): Readonly<Record<string, string>> {
    return this.#environment;
  }

  /** Whatever the exit code is. In a process only where the command or an option needs one. */
  run(words: readonly string[], options: RunOptions = {}): Promise<EndedCommand> {
    const { environment: given, input, ...ofProcess } = options;
    const environment = { ...this.#environment, ...given };
    if (words.includes('-') || Object.keys(ofProcess).length > 0)
      return runTollgate(words, { ...options, environment });
    return runInProcess(words, environment, input);
  }

  /** What it wrote to standard output, which must be all that there is to say. */
  async text(...words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(words);
    if (code !== 0) throw new Error(`tollgate ${words.join(' ')} ended with ${code}: ${stderr}`);
    return stdout;
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
  async json(...words: readonly string[]): Promise<any> {
    return JSON.parse(await this.text(...words, '-o', 'json'));
  }
}

async function ended(child: ReturnType<typeof spawn>, input: string, prompt = ''): Promise<EndedCommand> {
  let stdout = '';
  let stderr = '';
  child.stdin?.on('error', () => {});
  const sendWhenPrompted = (): void => {
    if (prompt !== '' && (stdout + stderr).includes(prompt)) child.stdin?.end(input);
  };
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    sendWhenPrompted();
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
    sendWhenPrompted();
  });
  if (prompt === '') child.stdin?.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}
