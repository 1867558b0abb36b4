import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { breakingChanges } from './breaking-changes.ts';
import { type InterfaceRecord, presentInterface } from './interface-record.ts';
import { recordedReleases } from './recorded-release.ts';
import { type JsonSchema, schemaChanges } from './schema-changes.ts';

const asIs = { before: (schema: JsonSchema) => schema, after: (schema: JsonSchema) => schema };
const object = (properties: object, rest: object = {}): JsonSchema => ({
  type: 'object',
  properties,
  ...rest,
});
const text = { type: 'string' };
const CLOSED = { additionalProperties: false };

describe('a change of a request', () => {
  const changes = (before: JsonSchema, after: JsonSchema) => schemaChanges('request', [before, after], asIs);

  it.each<[string, JsonSchema, JsonSchema]>([
    ['a new member', object({ a: text }), object({ a: text, b: text })],
    ['a member that is optional now', object({ a: text }, { required: ['a'] }), object({ a: text })],
    ['a new word', { enum: ['a'] }, { enum: ['a', 'b'] }],
    ['a wider bound', { maxLength: 5, minimum: 2 }, { maxLength: 6, minimum: 1 }],
    ['a further type', text, { type: ['string', 'null'] }],
    ['a bound that is gone', { pattern: '^a' }, {}],
  ])('breaks nobody by %s', (_what, before, after) => {
    expect(changes(before, after)).toEqual([]);
  });

  it.each<[string, JsonSchema, JsonSchema]>([
    ['a member that is required now', object({}), object({ a: text }, { required: ['a'] })],
    ['a member that is gone', object({ a: text }, CLOSED), object({}, CLOSED)],
    ['a word that is gone', { enum: ['a', 'b'] }, { enum: ['a'] }],
    ['words where there was any text', text, { type: 'string', enum: ['a'] }],
    ['a tighter bound', { maxLength: 5 }, { maxLength: 4 }],
    ['a new bound', { type: 'integer' }, { type: 'integer', minimum: 1 }],
    ['another pattern', { pattern: '^a' }, { pattern: '^b' }],
    ['a type that is gone', { type: ['string', 'null'] }, text],
    [
      'a member below another one',
      object({ a: object({ b: text }) }),
      object({ a: object({ b: { type: 'number' } }) }),
    ],
    ['the items of a list', { items: { maximum: 2 } }, { items: { maximum: 1 } }],
    ['an alternative that is gone', { oneOf: [text, {}] }, { oneOf: [text] }],
  ])('breaks by %s', (_what, before, after) => {
    expect(changes(before, after)).toHaveLength(1);
  });
});

describe('a change of a response', () => {
  const changes = (before: JsonSchema, after: JsonSchema) => schemaChanges('response', [before, after], asIs);

  it.each<[string, JsonSchema, JsonSchema]>([
    ['a new member', object({}), object({ a: text }, { required: ['a'] })],
    ['a new word', { type: 'string', enum: ['a'] }, { type: 'string', enum: ['a', 'b'] }],
    ['a narrower type', { type: ['number', 'null'] }, { type: 'integer' }],
  ])('breaks nobody by %s', (_what, before, after) => {
    expect(changes(before, after)).toEqual([]);
  });

  it.each<[string, JsonSchema, JsonSchema]>([
    ['a member that is gone', object({ a: text }), object({})],
    ['a member that may be missing', object({ a: text }, { required: ['a'] }), object({ a: text })],
    ['another type', { type: 'integer' }, text],
    ['null', text, { type: ['string', 'null'] }],
    ['a further alternative', { oneOf: [text] }, { oneOf: [text, { type: 'null' }] }],
  ])('breaks by %s', (_what, before, after) => {
    expect(changes(before, after)).toHaveLength(1);
  });

  it('ends where schemas hold themselves', () => {
    const tree = { $ref: '#/tree' };
    const resolve = (schema: JsonSchema) =>
      schema.$ref === undefined ? schema : object({ below: tree, a: text });
    expect(schemaChanges('response', [tree, tree], { before: resolve, after: resolve })).toEqual([]);
  });
});

const present = await presentInterface();

describe('the interface of this version', () => {
  /** The interface with a change to its copy. */
  function changedBy(change: (copy: InterfaceRecord) => unknown): readonly string[] {
    const after = structuredClone(present);
    change(after);
    return breakingChanges(present, after);
  }

  it('is complete, and breaks nothing where it is compared with itself', () => {
    const { settings, metrics, commands, chart, events, openapi, ...others } = present;
    expect(settings).toMatchObject({ PORT: { default: '8080' } });
    expect(metrics).toMatchObject({ tollgate_requests_total: 'counter' });
    expect(commands['tollgate keys import']).toMatchObject({ arguments: ['<file>'] });
    expect(chart).toMatchObject({ 'image.tag': 'string' });
    expect(Object.keys(events)).toContain('tollgate.key.created');
    expect(Object.keys(openapi.paths)).toContain('/rate-limit');
    expect(others).toMatchObject({
      errors: { store_unavailable: 503 },
      exitCodes: { unavailable: 75 },
      client: { createTollgateClient: 'value', pagesOf: 'value', RetryOptions: 'type' },
    });
    expect(changedBy(() => {})).toEqual([]);
  });

  it.each<[string, (copy: InterfaceRecord) => unknown]>([
    ['setting PORT: is gone', (copy) => Reflect.deleteProperty(copy.settings, 'PORT')],
    [
      'setting PORT: has another default',
      (copy) => Object.assign(copy.settings.PORT ?? {}, { default: '1' }),
    ],
    [
      'metric tollgate_requests_total: is gone',
      (copy) => Reflect.deleteProperty(copy.metrics, 'tollgate_requests_total'),
    ],
    [
      'metric tollgate_requests_total: is of another type',
      (copy) => Object.assign(copy.metrics, { tollgate_requests_total: 'gauge' }),
    ],
    ['command tollgate top: is gone', (copy) => Reflect.deleteProperty(copy.commands, 'tollgate top')],
    [
      'command tollgate top: <key> is required now',
      (copy) => Object.assign(copy.commands['tollgate top'] ?? {}, { arguments: ['<key>'] }),
    ],
    ['chart value image.tag: is gone', (copy) => Reflect.deleteProperty(copy.chart, 'image.tag')],
    [
      'chart value image.tag: is of another kind',
      (copy) => Object.assign(copy.chart, { 'image.tag': 'list' }),
    ],
    ['error code key_expired: is gone', (copy) => Reflect.deleteProperty(copy.errors, 'key_expired')],
    [
      'error code key_expired: has another status',
      (copy) => Object.assign(copy.errors, { key_expired: 403 }),
    ],
    ['exit code notFound: is gone', (copy) => Reflect.deleteProperty(copy.exitCodes, 'notFound')],
    ['exit code notFound: is another number', (copy) => Object.assign(copy.exitCodes, { notFound: 9 })],
    ['export of tollgate/client bodyOf: is gone', (copy) => Reflect.deleteProperty(copy.client, 'bodyOf')],
    [
      'export of tollgate/client bodyOf: is only a type',
      (copy) => Object.assign(copy.client, { bodyOf: 'type' }),
    ],
    [
      'event tollgate.key.created: is gone',
      (copy) => Reflect.deleteProperty(copy.events, 'tollgate.key.created'),
    ],
    [
      'GET /rate-limit: is gone',
      (copy) => Reflect.deleteProperty(copy.openapi.paths['/rate-limit'] ?? {}, 'get'),
    ],
    [
      'GET /rate-limit: response 200: is gone',
      (copy) => Object.assign(copy.openapi.paths['/rate-limit']?.get as object, { responses: {} }),
    ],
    [
      'GET /rate-limit: parameter query new: is required now',
      (copy) =>
        Object.assign(copy.openapi.paths['/rate-limit']?.get as object, {
          parameters: [{ in: 'query', name: 'new', required: true, schema: {} }],
        }),
    ],
  ])('is broken by a change, which is named: %s', (change, apply) => {
    expect(changedBy(apply)).toContain(change);
  });
});

describe('npm run release:check', () => {
  it('compares with the newest release by version, not by name', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-releases-'));
    for (const name of ['1.9.0', '1.10.0', '1.10.0-rc.1', 'other']) await mkdir(join(folder, name));
    expect(recordedReleases(folder)).toEqual(['1.10.0', '1.10.0-rc.1', '1.9.0']);
    await rm(folder, { recursive: true });
    expect(recordedReleases(folder)).toEqual([]);
  });

  it('passes on this tree, and says what it compared with', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['tests/release/check.ts']);
    expect(stdout).toMatch(
      /^(No release is recorded yet|Nothing of the interface of \d+\.\d+\.\d+ is broken|.+ in the major)/m,
    );
  });
});
