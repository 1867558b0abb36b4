import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FIGURES, figuresIn, PAGES, publishedResult, withFigures } from './report/figures.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const pageOf = (page: string) => readFile(resolve(ROOT, page), 'utf8');

describe('the figures in the documents', () => {
  it('have their tables in one document alone', async () => {
    const [head = ''] = /^\| case \| gateway \|.*$/m.exec(await pageOf('docs/performance.md')) ?? [];
    expect(head).not.toBe('');
    const pages = globSync('docs/**/*.md', { cwd: ROOT, exclude: ['**/node_modules'] });
    const texts = await Promise.all(pages.map(pageOf));
    expect(pages.filter((_page, index) => texts[index]?.includes(head))).toEqual(['docs/performance.md']);
  });

  it.each(PAGES)('are those of the published run: %s (npm run bench:figures writes them)', async (page) => {
    const text = await pageOf(page);
    expect(figuresIn(text).length).toBeGreaterThan(0);
    expect(withFigures(text, await publishedResult())).toBe(text);
  });

  it('are each used, and each has a source', async () => {
    const used = new Set((await Promise.all(PAGES.map(pageOf))).flatMap(figuresIn));
    expect([...used].toSorted()).toEqual(Object.keys(FIGURES).toSorted());
    const result = await publishedResult();
    expect(() => withFigures('<!-- figure made-up -->1<!-- /figure -->', result)).toThrow('made-up');
    expect(() => withFigures('<!-- figure cpu-us -->1<!-- /figure -->', { ...result, cases: [] })).toThrow(
      'no case allowed',
    );
  });

  it('compare the gateway with others only where the bench has written it', async () => {
    const readme = (await pageOf('README.md')).replaceAll(/<!-- figure .*?<!-- \/figure -->/g, '');
    expect(readme).not.toMatch(/\d\s*[×x] (?:the CPU|that of|nginx|Express)/);
  });
});
