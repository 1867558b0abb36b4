import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { SETTINGS } from '../../src/settings/settings.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const SOURCE = join(ROOT, 'src');
const DOCUMENT = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
const FILES = globSync('**/*.{ts,tsx,lua}', { cwd: SOURCE });

/** The files of src that a name in the document may mean: the whole path, or its end where the text names the folder. */
function filesNamed(name: string): readonly string[] {
  return FILES.includes(name) ? [name] : FILES.filter((file) => file.endsWith(`/${name}`));
}

/** Whether a file declares a name: a function, a class, a constant or a method. */
function declares(file: string, name: string): boolean {
  const text = readFileSync(join(SOURCE, file), 'utf8');
  return new RegExp(
    `\\b(?:function|class|const|interface) ${name}\\b|^ +(?:async |get |readonly )*${name}[(<:]`,
    'm',
  ).test(text);
}

describe('docs/architecture.md', () => {
  it('names no file that does not exist', () => {
    const names = [...DOCUMENT.matchAll(/`([\w./-]+\.(?:ts|tsx|lua))`/g)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(40);
    expect(names.filter((name) => filesNamed(name).length === 0)).toEqual([]);
  });

  it('follows a request and a rotation by functions that their files have', () => {
    const steps = [...DOCUMENT.matchAll(/`([\w./-]+\.ts)` `(\w+)`/g)].map(([, file = '', name = '']) => ({
      file,
      name,
    }));
    expect(steps.length).toBeGreaterThan(20);
    expect(
      steps.filter(({ file, name }) => !filesNamed(file).some((found) => declares(found, name))),
    ).toEqual([]);
  });

  it('names a file to begin with for each folder, whose head says what comes in and what goes out', () => {
    const rows = [...DOCUMENT.matchAll(/^\| `([\w-]+)\/` \|.*\| `([\w./-]+)` \|/gm)];
    const folders = new Set(FILES.filter((file) => file.includes('/')).map((file) => file.split('/')[0]));
    expect(rows.map(([, folder]) => folder).toSorted()).toEqual([...folders].toSorted());
    const without = rows.filter(([, folder = '', file = '']) => {
      const head = readFileSync(join(SOURCE, folder, file), 'utf8').split('\n\n', 1)[0] ?? '';
      const parts = new RegExp(`^// The room \`${folder}\`: [^]+\n// In: [^]+\n// Out: [^]+\\.$`);
      return !parts.test(head) || !head.split('\n').every((line) => line.startsWith('// '));
    });
    expect(without.map(([, folder, file]) => `${folder}/${file}`)).toEqual([]);
  });
});

describe('the site of the documentation', () => {
  it('leads to every page', () => {
    const config = readFileSync(join(ROOT, 'docs/.vitepress/config.ts'), 'utf8');
    const linked = new Set([...config.matchAll(/\bpage\('[^']+', '([^']+)'\)/g)].map(([, link]) => link));
    const pages = globSync('docs/*.md', { cwd: ROOT }).map((file) => basename(file, '.md'));
    expect(pages.filter((page) => page !== 'index' && !linked.has(page))).toEqual([]);
  });
});

describe('docs/reliability.md', () => {
  it('names a test or a command for each promise, and no test that does not exist', () => {
    const guide = readFileSync(join(ROOT, 'docs/reliability.md'), 'utf8');
    const tables = guide.matchAll(/^\| when \| what holds \| test \|\n\|.*\n((?:\|.*\n)+)/gm);
    const checks = [...tables].flatMap(([, rows = '']) =>
      rows
        .trimEnd()
        .split('\n')
        .map((row) =>
          [...(row.split(' | ').at(-1) ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
        ),
    );
    expect(checks.length).toBeGreaterThan(60);
    expect(checks.filter((names) => names.length === 0)).toEqual([]);
    const tests = checks.flat().filter((name) => !name.startsWith('npm run '));
    expect(tests.filter((name) => !existsSync(join(ROOT, `tests/${name}.test.ts`)))).toEqual([]);
  });
});

describe('the pages of the docs', () => {
  const PAGES = globSync(['docs/*.md', '*.md'], { cwd: ROOT }).filter((page) => page !== 'CHANGELOG.md');
  /** Names of the system and of other products. */
  const OTHERS = ['HTTPS_PROXY', 'SO_REUSEPORT', 'UNKEY_ROOT_KEY'];

  /** What the pages say that has this form, with the page. */
  function named(form: RegExp): readonly (readonly [page: string, name: string])[] {
    return PAGES.flatMap((page) =>
      [...readFileSync(join(ROOT, page), 'utf8').matchAll(form)].map(
        ([, name = '']) => [page, name] as const,
      ),
    );
  }

  it('name no variable that nothing reads', () => {
    const settings = Object.values(SETTINGS).flatMap(({ variable }) => [variable, `${variable}_FILE`]);
    const files = globSync(['{src,bin,tests,k8s,.github}/**/*.{ts,tsx,js,yaml,yml}', '*.{yml,json}'], {
      cwd: ROOT,
    }).filter((file) => resolve(ROOT, file) !== import.meta.filename);
    const texts = files.map((file) => readFileSync(join(ROOT, file), 'utf8')).join('\n');
    const read = new Set(texts.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g));
    const names = named(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`/g);
    expect(names.length).toBeGreaterThan(300);
    const known = new Set([...settings, ...OTHERS]);
    expect(names.filter(([, name]) => !known.has(name) && !read.has(name))).toEqual([]);
  });

  it('name no script that package.json does not have', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const names = named(/\bnpm run (?:-s )?([a-z][a-z:-]*)/g);
    expect(names.length).toBeGreaterThan(30);
    expect(names.filter(([, name]) => !Object.hasOwn(scripts, name))).toEqual([]);
  });
});

describe('the files of src', () => {
  it('have base names of their own, but for a command and its endpoint, and the console', () => {
    const isEndpoint = (file: string): boolean => file.startsWith('management/');
    const files = FILES.filter((file) => !file.startsWith('console/'));
    const names = Map.groupBy(files, (file) => file.split('/').at(-1) ?? file);
    const shared = [...names.values()].filter((files) => {
      const inner = files.filter((file) => !file.startsWith('cli/commands/') && !isEndpoint(file));
      return files.length > 1 && (inner.length > 0 || files.filter(isEndpoint).length !== 1);
    });
    expect(shared).toEqual([]);
  });
});
