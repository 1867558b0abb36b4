import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from '@jest/globals';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGES = ['README.md', 'CHANGELOG.md', ...globSync('docs/**/*.md', { cwd: ROOT })].filter(
  (page) => !page.includes('node_modules'),
);

/** The anchors of a page, as GitHub and the site make them of its headings. */
function anchorsOf(file: string): ReadonlySet<string> {
  const text = readFileSync(file, 'utf8').replace(/^```.*?^```$/gms, '');
  const ids = [...text.matchAll(/<a id="([^"]+)"/g)].map(([, id = '']) => id);
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replace(/\]\([^)]*\)/g, '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set([...ids, ...headings]);
}

it('every link of the documents leads to a file that is there, and to a heading of it', () => {
  const links = PAGES.flatMap((page) => {
    const text = readFileSync(join(ROOT, page), 'utf8').replace(/^```.*?^```$/gms, '');
    return [...text.matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(([, path = '', anchor]) => ({
      page,
      target: path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path),
      anchor,
    }));
  });
  expect(links.length).toBeGreaterThan(200);
  const dead = links.filter(
    ({ target, anchor }) =>
      !existsSync(target) ||
      (anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).has(anchor)),
  );
  expect(dead.map(({ page, target, anchor }) => `${page}: ${target}#${anchor}`)).toEqual([]);
});
