import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CLIENT_TIMEOUTS } from '../../src/server/connections/client-timeouts.ts';
import { requireProgram } from '../support/debian-package.ts';
import { documentedBlocks } from '../support/documented-commands.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { pythonEnvironment } from '../support/python-environment.ts';

const run = promisify(execFile);
const HTTPX = 'httpx==0.28.1';
/** Go compiles the first time. */
const DEADLINE_MS = 300_000;

interface Language {
  /** Of the block in the page. */
  readonly language: string;
  readonly file: string;
  /** The program that the file is, where its language is on this machine. Called once, in the folder with the file. */
  readonly command: () => Promise<readonly string[] | undefined>;
}

const LANGUAGES: readonly Language[] = [
  {
    language: 'sh',
    file: 'verify.sh',
    command: async () => {
      await Promise.all([requireProgram('curl', 'curl'), requireProgram('jq', 'jq')]);
      return ['sh', '-e', 'verify.sh'];
    },
  },
  { language: 'js', file: 'verify.mjs', command: async () => [process.execPath, 'verify.mjs'] },
  {
    language: 'python',
    file: 'verify.py',
    command: async () => [join(await pythonEnvironment(HTTPX), 'python'), 'verify.py'],
  },
  {
    language: 'go',
    file: 'main.go',
    command: async () => {
      // Only where it can be installed is it certain to be there.
      const go = await requireProgram('go', 'golang-go').catch(() => undefined);
      if (go === undefined) return undefined;
      await run(go, ['build', '-o', 'verify', 'main.go'], {
        cwd: directory,
        env: { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '' },
      });
      return ['./verify'];
    },
  },
];

let fleet: Fleet;
let directory: string;
let token: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-programs-'));
  fleet = await startInProcessFleet(1, { AUTHORIZE_PORT: '0' });
  const { body } = await fleet.admin.call('POST', '/tollgate/admin-token/create', {
    name: 'a service',
    scopes: ['verifier'],
  });
  token = body.secret;
});
afterAll(async () => {
  await fleet?.stop();
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
});

describe.each(LANGUAGES)('the program of docs/authorize.md in $language', ({ language, file, command }) => {
  it(
    'says whether a request is allowed, counts it, and fails without a decision',
    async () => {
      const blocks = (await documentedBlocks('authorize.md')).filter(
        (block) => block.headings.includes('### Call it') && block.language === language,
      );
      expect(blocks).toHaveLength(1);
      await writeFile(join(directory, file), blocks[0]?.text ?? '');
      const [program, ...args] = (await command()) ?? [];
      if (program === undefined) {
        process.stderr.write(
          `The program in ${language} was left out: there is no ${language} on the PATH.\n`,
        );
        return;
      }
      const play = async (secret: string, bearer = token): Promise<string> => {
        const settings = {
          TOLLGATE: fleet.replicas[0]?.authorizeUrl,
          TOLLGATE_TOKEN: bearer,
          SECRET: secret,
        };
        const env = { ...process.env, ...settings, NODE_OPTIONS: '' };
        return (await run(program, args, { cwd: directory, env })).stdout;
      };
      await fleet.admin.makePlan(`one-${language}`, 1, 'day');
      const { secret } = await fleet.admin.makeKey(`program in ${language}`, `one-${language}`);
      expect(await play(secret)).toBe('allowed\n');
      expect(await play(secret)).toBe('rejected: limited\n');
      expect(await play('tg_wrong')).toBe('rejected: invalid_api_key\n');
      await expect(play(secret, 'no token')).rejects.toThrow(/401|Unauthorized/);
    },
    DEADLINE_MS,
  );
});

it('the gateways of docs/authorize.md end idle connections before the side that they call does', async () => {
  const blocks = await documentedBlocks('authorize.md');
  const secondsIn = (language: string, heading: string, setting: RegExp): number => {
    const block = blocks.find((one) => one.language === language && one.headings.at(-1) === heading);
    return Number(setting.exec(block?.text ?? '')?.[1]);
  };
  const nginx = secondsIn('nginx', '### nginx', /keepalive_timeout (\d+)s;/);
  const envoy = secondsIn('yaml', '### Envoy', /idle_timeout: (\d+)s/);
  const examples = await Promise.all(
    [
      ['istio', /idleTimeout: (\d+)s/] as const,
      ['envoy-gateway', /connectionIdleTimeout: (\d+)s/] as const,
    ].map(async ([example, setting]) =>
      Number(setting.exec(await readFile(`k8s/examples/authorize/${example}.yaml`, 'utf8'))?.[1]),
    ),
  );
  for (const seconds of [nginx, envoy, ...examples])
    expect(seconds * 1000).toBeLessThan(CLIENT_TIMEOUTS.keepAliveMs);
  // Between nginx and the replicas.
  expect(nginx).toBeLessThan(secondsIn('haproxy', '### Several replicas', /timeout http-keep-alive (\d+)s/));
});
