import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { requireProgram } from '../support/debian-package.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { actionlint } from './actionlint.ts';

const run = promisify(execFile);

/** A `docker` that knows an image for one architecture, and like the real one takes no capital letters in the name of a repository. */
const REGISTRY = `#!/bin/bash
case "\${!#}" in
  *[A-Z]*) echo 'repository name must be lowercase' >&2; exit 1 ;;
  *@sha256:index) echo '{"manifests":[{"digest":"sha256:one","platform":{"os":"linux","architecture":"arm64"}}]}' ;;
  *@sha256:one) echo '{"layers":[{"size":1000000},{"size":2000000}]}' ;;
  *) exit 1 ;;
esac
`;

/** What a registry says of a package in which a vulnerability is known. */
const ADVISORY = {
  id: 1,
  url: 'https://github.com/advisories/GHSA-0000-0000-0000',
  title: 'Cross-site scripting',
  severity: 'moderate',
  vulnerable_versions: '*',
  cwe: [],
  cvss: { score: 5, vectorString: null },
};

interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly needs?: string | readonly string[];
        readonly permissions?: Readonly<Record<string, string>>;
        readonly steps?: readonly Step[];
      }
    >
  >;
}

const files = globSync('.github/workflows/*.yml').toSorted();
const workflowOf = (file: string): Workflow => parse(readFileSync(file, 'utf8'));
const stepsOf = ({ jobs }: Workflow): readonly Step[] =>
  Object.values(jobs).flatMap(({ steps = [] }) => steps);
const release = workflowOf('.github/workflows/release.yml');

describe('the workflows', () => {
  it('run what every change has to pass, also before a release', () => {
    expect(stepsOf(workflowOf('.github/workflows/ci.yml')).map(({ run }) => run)).toContain('bash .ci/run');
    for (const [name, job] of Object.entries(release.jobs))
      if (name === 'check') expect(job).toMatchObject({ uses: './.github/workflows/ci.yml' });
      else expect([job.needs].flat()).toContain('check');
  });

  it('may write nothing but what a job says', () => {
    for (const file of files) {
      const rights = Object.values(workflowOf(file).permissions ?? { missing: 'write' });
      expect([file, rights.filter((right) => right !== 'read')]).toEqual([file, []]);
    }
    const written = Object.entries(release.jobs).map(([name, { permissions = {} }]) => [
      name,
      Object.keys(permissions).filter((scope) => permissions[scope] === 'write'),
    ]);
    expect(written).toEqual([
      ['check', []],
      ['record', []],
      ['image', ['packages']],
      ['package', ['contents', 'id-token', 'attestations']],
      ['chart', ['packages']],
    ]);
  });

  it('keep the results that their benches write, not those of the repository', () => {
    const { jobs } = workflowOf('.github/workflows/nightly.yml');
    for (const [name, command] of [
      ['bench', 'npm run -s bench -- '],
      ['scale', 'npm run -s bench:scale -- '],
    ] as const) {
      const steps = jobs[name]?.steps ?? [];
      const line = steps.find(({ run }) => run?.startsWith(command))?.run ?? '';
      const written = /--out (\S+)/.exec(line)?.[1] ?? (line.includes('--publish') ? 'docs' : 'none');
      const kept = String(steps.find(({ uses }) => uses?.includes('upload-artifact'))?.with?.path)
        .trim()
        .split('\n');
      const results = kept.filter((path) => path.endsWith('.json'));
      expect([name, results.length]).toEqual([name, 1]);
      expect([name, results.filter((path) => !path.startsWith(`${written}/`))]).toEqual([name, []]);
    }
  });

  it('use actions by a major version or a commit', () => {
    const used = files.flatMap((file) => stepsOf(workflowOf(file)).flatMap(({ uses = [] }) => uses));
    expect(used.length).toBeGreaterThan(5);
    expect(used.filter((action) => !/^[\w-]+\/[\w-]+@(v\d+|[0-9a-f]{40})$/.test(action))).toEqual([]);
  });

  it('put nothing into scripts that others may have written', () => {
    for (const file of files)
      for (const { run = '' } of stepsOf(workflowOf(file))) expect(run).not.toContain('${{');
  });

  it('look for known vulnerabilities also in what is bundled into the console', async () => {
    const { jobs } = workflowOf('.github/workflows/nightly.yml');
    const command = jobs.audit?.steps?.find(({ run }) => run?.startsWith('npm audit'))?.run ?? '';
    const registry = createServer(({ method }, res) => {
      res.writeHead(method === 'POST' ? 200 : 404, { 'content-type': 'application/json' });
      res.end(JSON.stringify(method === 'POST' ? { echarts: [ADVISORY] } : {}));
    });
    const port = await listenOnLoopback(registry);
    try {
      const env = { ...process.env, npm_config_registry: `http://127.0.0.1:${port}/` };
      const report = await run('bash', ['-c', `${command} --json`], { env }).catch((error) => error);
      expect(report).toMatchObject({ code: 1 });
      expect(Object.keys(JSON.parse(report.stdout).vulnerabilities)).toEqual(['echarts']);
    } finally {
      registry.close();
    }
  });

  it('publish an image for two architectures with its parts and its origin', () => {
    const build = stepsOf(release).find(({ uses }) => uses?.startsWith('docker/build-push-action@'));
    expect(build?.with).toMatchObject({
      platforms: 'linux/amd64,linux/arm64',
      push: true,
      sbom: true,
      provenance: 'mode=max',
    });
  });

  it('report the sizes of an image whose owner or repository has capital letters', async () => {
    await requireProgram('jq', 'jq');
    const step = stepsOf(release).find(({ name }) => name === 'What is fetched for each architecture');
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-release-'));
    try {
      await writeFile(join(directory, 'docker'), REGISTRY, { mode: 0o755 });
      const summary = join(directory, 'summary');
      await run('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step?.run ?? ''], {
        env: {
          PATH: `${directory}:${process.env.PATH}`,
          IMAGE: 'ghcr.io/Acme/Tollgate@sha256:index',
          GITHUB_STEP_SUMMARY: summary,
        },
      });
      expect(readFileSync(summary, 'utf8')).toBe('linux/arm64: 3 MB compressed\n');
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it('are checked by actionlint, which finds what is wrong', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-workflow-'));
    try {
      const file = join(directory, 'bad.yml');
      await writeFile(
        file,
        'on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - rum: echo\n',
      );
      const verdict = await actionlint([file]);
      expect(verdict).toEqual(
        'leftOut' in verdict
          ? { leftOut: expect.stringMatching(/^(there is no go|go could not)/) }
          : { faults: expect.arrayContaining([expect.stringContaining('step must run script')]) },
      );
      if (!('leftOut' in verdict)) expect(await actionlint(files)).toEqual({ faults: [] });
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
