import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { readConfigurationText } from '../../src/app/configuration-file.ts';
import { CONFIGURATION_SCHEMA, configurationSchema } from '../support/configuration-schema.ts';

const schema = JSON.parse(readFileSync(CONFIGURATION_SCHEMA, 'utf8'));
const isValid = new Ajv2020({ allowUnionTypes: true }).compile(schema);
const guide = read('docs/configuration-as-code.md');

describe('docs/config.schema.json', () => {
  it('is current (npm run config-schema writes it)', () => {
    expect(schema).toEqual(configurationSchema());
  });

  it.each([
    ['the example for Kubernetes', read('k8s/components/configuration/gateway.yaml')],
    ['the example of the guide', /## The file\n\n```yaml\n(.*?)```/s.exec(guide)?.[1] ?? ''],
  ])('accepts %s, as the gateway does', (_what, text) => {
    expect(isValid(parse(text))).toBe(true);
    expect(readConfigurationText(text, 'insensitive')).toMatchObject({
      plans: [{ id: 'silver' }],
      keys: [{ name: 'Mobile app' }],
    });
  });

  it.each([
    ['an unknown field', { keys: [{ externalId: 'a', name: 'n', expires_at: null }] }],
    ['a limit of 0', { plans: [{ rateLimitId: 'a', limit: 0, period: 'day' }] }],
    ['a period that is none', { plans: [{ rateLimitId: 'a', limit: 1, period: 'soon' }] }],
    ['a key without an externalId', { keys: [{ name: 'n' }] }],
  ])('rejects %s', (_what, value) => {
    expect(isValid(value)).toBe(false);
  });
});

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}
