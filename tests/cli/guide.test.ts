import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { CLI_GUIDE, cliGuideWithCommands } from '../support/cli-guide.ts';

/** The sections of docs/cli.md that have the help of a command. */
const sections = (await readFile(CLI_GUIDE, 'utf8'))
  .split('\n### ')
  .filter((section) => section.startsWith('tollgate '))
  .map((section) => ({ command: section.split('\n', 1)[0] ?? '', help: section }));

it('docs/cli.md has the help of every command (npm run cli-guide writes it)', async () => {
  expect(await readFile(CLI_GUIDE, 'utf8')).toBe(await cliGuideWithCommands());
});

describe('the help of every command', () => {
  it('says in a sentence what the command does', () => {
    const without = sections.filter(
      ({ help }) => !/^Usage: .*\n(?: {2,}.*\n)*\n(?!Arguments:|Options:)[A-Z]/m.test(help),
    );
    expect(without.map(({ command }) => command)).toEqual([]);
  });

  it('has an example of it', () => {
    expect(sections.length).toBeGreaterThan(30);
    const without = sections.filter(({ command, help }) => !examplesIn(help).includes(command));
    expect(without.map(({ command }) => command)).toEqual([]);
  });

  it('has no option in its examples that the command does not take', () => {
    const unknown = sections.flatMap(({ command, help }) => {
      const known = new Set([...help.matchAll(/^ +(?:-\w, )?(--[\w-]+)/gm)].map(([, option]) => option));
      const lines = examplesIn(help)
        .split('\n')
        .filter((line) => line.trimStart().startsWith(`${command} `));
      const used = lines.flatMap((line) => [...line.replace(/ [|>].*/, '').matchAll(/ (--[\w-]+)/g)]);
      return used.flatMap(([, option]) => (known.has(option) ? [] : [`${command} ${option}`]));
    });
    expect(unknown).toEqual([]);
  });
});

function examplesIn(help: string): string {
  return help.split(/\nExamples?:\n/)[1] ?? '';
}
