import { readFileSync } from 'node:fs';
import { isMap, isScalar, type Pair, parseDocument, type Scalar, type YAMLMap } from 'yaml';

export const CHART_GUIDE = new URL('../../docs/chart.md', import.meta.url);
const VALUES = new URL('../../k8s/chart/values.yaml', import.meta.url);
const START = '<!-- values -->\n';

/** The guide as it is, with the table of the chart's values below its mark. */
export function chartGuideWithValues(): string {
  const [introduction = ''] = readFileSync(CHART_GUIDE, 'utf8').split(START);
  const { contents } = parseDocument(readFileSync(VALUES, 'utf8'));
  if (!isMap(contents)) throw new Error('values.yaml is no map');
  const rows = rowsOf(contents, '').map((cells) => `| ${cells.join(' | ')} |\n`);
  return `${introduction}${START}\n| value | default | what it is |\n|---|---|---|\n${rows.join('')}`;
}

/** One row for each value; a map whose fields are described, or that is a group of switches, gives one for each field. */
function rowsOf(map: YAMLMap, prefix: string): readonly (readonly string[])[] {
  return map.items.flatMap((pair, index) => {
    const path = `${prefix}${nameOf(pair)}`;
    // The parser gives the comment before the first field of a map below another to that map.
    const comment = textOf((pair.key as Scalar).commentBefore ?? (index === 0 ? map.commentBefore : ''));
    if (comment === '' && !isGroup(pair.value)) throw new Error(`values.yaml does not describe ${path}`);
    if (prefix === '' && isGroup(pair.value)) {
      const head = comment === '' ? [] : [[`\`${path}\``, '', comment]];
      return [...head, ...rowsOf(pair.value, `${path}.`)];
    }
    const value = isScalar(pair.value) ? pair.value.value : (pair.value as YAMLMap).toJSON();
    const text = JSON.stringify(value);
    return [[`\`${path}\``, text.length > 60 ? 'see values.yaml' : `\`${text}\``, comment]];
  });
}

/** Not what goes to Kubernetes as it is: a map of our own fields. */
function isGroup(value: unknown): value is YAMLMap {
  const names = isMap(value) ? value.items.map((pair) => nameOf(pair as Pair)) : [];
  const ours = ['enabled', 'repository', 'create', 'port', 'content'];
  return ours.some((name) => names.includes(name)) && !names.includes('httpGet');
}

function nameOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : String(key);
}

/** A blank line ends the head of the file, which is no description. */
function textOf(comment: string | null | undefined): string {
  return ((comment ?? '').split('\n\n').at(-1) ?? '')
    .split('\n')
    .map((line) => line.trim())
    .join(' ')
    .replaceAll('|', '\\|');
}
