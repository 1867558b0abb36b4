import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import { parseYaml } from '../../src/platform/text/yaml.ts';
import { yamlBlock, yamlEntries } from '../../src/platform/text/yaml-writer.ts';

const texts = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    'yes',
    'Null',
    '~',
    '1e3',
    '0x1f',
    ' a',
    'a ',
    'a: b',
    'a #b',
    '- a',
    '<<',
    '__x',
    '\u202ea',
  ),
  fc.constantFrom('a\nb\n', '\ufeff', '\u2028', '\u007f\u0085', '%a', '@a', '2030-01-01', 'x'.repeat(2000)),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    texts,
    fc.constantFrom(null, true, false, 0, -1.5, 1e21, 5e-324),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(texts, tie('value'), { maxKeys: 4 }),
  ),
}));

it('what is written as YAML is read as the same value', () => {
  fc.assert(
    fc.property(fc.dictionary(texts, value, { minKeys: 1, maxKeys: 4 }), (object) => {
      const text = yamlBlock(object);
      expect(parse(text)).toEqual(object);
      expect(parseYaml(text)).toEqual(parse(JSON.stringify(object)));
    }),
    { numRuns: 300 },
  );
});

it('what is written as YAML has no character that could control a terminal', () => {
  fc.assert(
    fc.property(fc.dictionary(texts, value, { maxKeys: 4 }), (object) => {
      expect(yamlBlock(object)).not.toMatch(/[^\P{Cc}\n]|[\u2028-\u202e\u2066-\u2069]/u);
    }),
  );
});

it('is in blocks, as a person writes it', () => {
  const keys = [
    { externalId: 'a', name: 'Mobile app', tags: ['eu', 'x:y'], metadata: { on: 'yes', n: [] } },
    {},
  ];
  expect(`keys:\n${yamlEntries(keys, 2)}`).toBe(
    'keys:\n  - externalId: a\n    name: Mobile app\n    tags:\n      - eu\n      - "x:y"\n    metadata:\n      "on": "yes"\n      "n": []\n  - {}\n',
  );
});
