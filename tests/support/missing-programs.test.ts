import { afterEach, describe, expect, it } from '@jest/globals';
import { requireProgramsOfTests } from './missing-programs.ts';

const PATH = process.env.PATH;
const cannotInstall = async () => false;

afterEach(() => {
  process.env.PATH = PATH;
});

describe('a run whose user can install nothing', () => {
  it('ends with one sentence that names all that is missing, and the command', async () => {
    process.env.PATH = '/nowhere';
    const fault = await requireProgramsOfTests([], cannotInstall).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(Error);
    const { message, stack } = fault as Error;
    expect(message).toMatch(
      /^These tests need redis-server or valkey-server, chromium-headless-shell or chromium, .*haproxy.*; on Debian: sudo apt-get install --no-install-recommends redis-server chromium-headless-shell .*haproxy/,
    );
    expect(message).not.toContain('\n');
    expect(stack).toBe(message);
  });

  it('names only what the chosen tests need', async () => {
    process.env.PATH = '/nowhere';
    await expect(requireProgramsOfTests(['tests/http/'], cannotInstall)).resolves.toBeUndefined();
    await expect(requireProgramsOfTests(['tests/operations/restore'], cannotInstall)).rejects.toThrow(
      'redis-tools',
    );
  });

  it('goes on where each program is on the PATH', async () => {
    await expect(requireProgramsOfTests(['tests/storage/redis/lua'], cannotInstall)).resolves.toBeUndefined();
  });
});

describe('a run whose user can install packages', () => {
  it('goes on, because tests install what they lack', async () => {
    process.env.PATH = '/nowhere';
    await expect(requireProgramsOfTests([], async () => true)).resolves.toBeUndefined();
  });
});
