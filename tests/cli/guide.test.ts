import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { CLI_GUIDE, cliGuideWithCommands } from '../support/cli-guide.ts';

it('docs/cli.md has the help of every command (npm run cli-guide writes it)', async () => {
  expect(await readFile(CLI_GUIDE, 'utf8')).toBe(await cliGuideWithCommands());
});
