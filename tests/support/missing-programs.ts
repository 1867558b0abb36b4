import { canInstall, onPath } from './debian-package.ts';
import { dockerResponds } from './docker.ts';
import { textsOfTests } from './needed-stores.ts';

const REDIS = { anyOf: ['redis-server', 'valkey-server'], debianPackage: 'redis-server' };
const CHROMIUM = {
  anyOf: ['chromium-headless-shell', 'chromium'],
  debianPackage: 'chromium-headless-shell',
};

interface Program {
  /** Each of them does. */
  readonly anyOf: readonly string[];
  readonly debianPackage: string;
}

/**
 * Rejects, before a test runs, if the chosen test files need programs that are neither on the PATH nor can be installed by this user. The message
 * is one sentence with all of them and the command that installs them.
 */
export async function requireProgramsOfTests(
  patterns: readonly string[],
  mayInstall: () => Promise<boolean> = canInstall,
): Promise<void> {
  if (await mayInstall()) return;
  const missing: Program[] = [];
  for (const program of await programsOfTests(textsOfTests(patterns))) {
    const found = await Promise.all(program.anyOf.map(onPath));
    if (found.every((path) => path === undefined)) missing.push(program);
  }
  if (missing.length === 0) return;
  const names = missing.map(({ anyOf }) => anyOf.join(' or '));
  const packages = [...new Set(missing.map(({ debianPackage }) => debianPackage))];
  const fault = new Error(
    `These tests need ${names.join(', ')}, which the PATH does not have; on Debian: sudo apt-get install --no-install-recommends ${packages.join(' ')}`,
  );
  // Jest prints the stack, whose lines are of no use here.
  fault.stack = fault.message;
  throw fault;
}

async function programsOfTests(texts: readonly string[]): Promise<readonly Program[]> {
  const named = texts
    .flatMap((text) => [...text.matchAll(/\brequireProgram\('([^']+)', '([^']+)'\)(?!\.catch)/g)])
    .map(([, program = '', debianPackage = '']): Program => ({ anyOf: [program], debianPackage }));
  const unique = [...new Map(named.map((program) => [program.anyOf[0], program])).values()];
  const uses = (pattern: RegExp) => texts.some((text) => pattern.test(text));
  const startsRedis = uses(/\bstartRedis(Server|Cluster|Sentinel)\b/);
  const sharesRedis = uses(/\btestRedisUrl\b/) && !process.env.TEST_REDIS_URL && !(await dockerResponds());
  return [
    ...(startsRedis || sharesRedis ? [REDIS] : []),
    ...(uses(/\b(launch|find)Chromium\b/) ? [CHROMIUM] : []),
    ...unique,
  ];
}
