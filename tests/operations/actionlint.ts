import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The checker of workflows, a Go program that no other registry here has. */
const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12';

/** What actionlint says of workflow files: its lines, none where it finds nothing; or why it could not be run. */
export type Verdict = { readonly faults: readonly string[] } | { readonly leftOut: string };

/** Checks workflow files with actionlint, which Go builds from its source. */
export async function actionlint(files: readonly string[]): Promise<Verdict> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-actionlint-'));
  try {
    const env = { ...process.env, GOBIN: directory };
    const missing = await run('go', ['install', ACTIONLINT], { env }).then(
      () => undefined,
      (error: Error & { code?: unknown; stderr?: string }) =>
        error.code === 'ENOENT'
          ? 'there is no go on the PATH'
          : `go could not build it: ${error.stderr?.trim()}`,
    );
    if (missing !== undefined) return { leftOut: missing };
    // Without the checkers of scripts, which one machine has and another has not.
    const words = ['-no-color', '-oneline', '-shellcheck=', '-pyflakes=', ...files];
    return await run(join(directory, 'actionlint'), words).then(
      () => ({ faults: [] }),
      ({ stdout, stderr }: { stdout: string; stderr: string }) => ({
        faults: `${stdout}${stderr}`.split('\n').filter((line) => line !== ''),
      }),
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
