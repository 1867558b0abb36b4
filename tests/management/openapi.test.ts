import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { createBodyCompiler } from '../../src/http/body-schema.ts';
import { DOCUMENTED_ENDPOINTS } from '../../src/management/endpoints.ts';
import { BODY_FORMATS } from '../../src/management/formats.ts';
import { BODY_EXAMPLES } from '../../src/management/openapi/body-examples.ts';
import { openApiDocument } from '../../src/management/openapi/document.ts';
import { RESPONSE_EXAMPLES } from '../../src/management/openapi/response-examples.ts';
import { TEXT_RULES } from '../../src/management/openapi/text-rules.ts';
import { codePoint } from '../support/code-point.ts';
import { closed } from '../support/documented-responses.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const document = JSON.parse(JSON.stringify(openApiDocument(DOCUMENTED_ENDPOINTS)));
const withBody = DOCUMENTED_ENDPOINTS.filter(({ body }) => body !== undefined);

describe('the OpenAPI document', () => {
  let management: TestManagement;
  beforeAll(async () => {
    management = await startManagement();
  });
  afterAll(() => management.stop());

  it('is served to every valid credential, and to no other', async () => {
    const { body } = await management.send('get', '/tollgate/openapi.json').expect(200);
    expect(body).toEqual(document);
    await management.bare('get', '/tollgate/openapi.json').expect(401);
  });

  it.each([
    ['403', ['root_token_off', 'origin_not_allowed']],
    ['503', ['overloaded', 'provider_unavailable']],
  ])('lists under %s what may become of any credential of an administrator', (status, codes) => {
    const managed = DOCUMENTED_ENDPOINTS.filter(
      ({ forConsumers, forHolders }) => !forConsumers && !forHolders,
    );
    expect(managed.length).toBeGreaterThan(50);
    for (const { method, path } of managed) {
      const { $ref } = document.paths[path][method].responses[status];
      const { description } = document.components.responses[$ref.split('/').at(-1)];
      expect([method, path, description.split(', ')]).toEqual([method, path, expect.arrayContaining(codes)]);
    }
  });

  it('lists the 404 that the sessions of people are without an identity provider', async () => {
    const { body } = await management.send('get', '/tollgate/session').expect(404);
    expect(body.code).toBe('not_found');
    expect(Object.keys(document.paths['/tollgate/session'].get.responses)).toContain('404');
  });

  it('has the header by which the stream of events goes on', () => {
    const { parameters } = document.paths['/tollgate/events'].get;
    expect(parameters).toContainEqual({ $ref: '#/components/parameters/LastEventId' });
    expect(document.components.parameters.LastEventId).toMatchObject({ name: 'Last-Event-ID', in: 'header' });
  });

  it('has a list as a second content of events that are sent in batches, and of no others', () => {
    const { 'tollgate.usage.hour': usage, ...others } = document.webhooks;
    const { 'application/cloudevents+json': single, ...more } = usage.post.requestBody.content;
    expect(more).toEqual({
      'application/cloudevents-batch+json': { schema: { type: 'array', minItems: 1, items: single.schema } },
    });
    expect(JSON.stringify(others)).not.toContain('batch+json');
  });

  it('names every object that has fields', () => {
    const inline = partsOf(document.paths).filter((part) => 'properties' in part);
    const nested = Object.values<object>(document.components.schemas).flatMap((schema) =>
      partsOf(schema).filter((part) => part !== schema && 'properties' in part),
    );
    expect([...inline, ...nested]).toEqual([]);
  });

  it('has one type in each schema, besides null, and a property for each required one', () => {
    const schemas = Object.values<object>(document.components.schemas).flatMap(partsOf);
    const severalTypes = schemas.filter(
      ({ type }) => Array.isArray(type) && type.filter((name) => name !== 'null').length > 1,
    );
    const withoutProperty = schemas.filter(
      ({ type, required, properties }) =>
        type === 'object' &&
        Array.isArray(required) &&
        required.some((name) => !Object.hasOwn(properties ?? {}, name)),
    );
    expect([...severalTypes, ...withoutProperty]).toEqual([]);
  });

  it('says of a response in YAML what it says of the JSON', () => {
    const contents = partsOf(document.paths).filter((part) => 'application/yaml' in part);
    expect(contents).not.toEqual([]);
    for (const content of contents) {
      expect(content['application/yaml']).toHaveProperty('schema', schemaOfJson(content));
    }
  });

  it('knows no format that is not one of JSON Schema', () => {
    const formats = partsOf(document).flatMap((part) => ('format' in part ? [part.format] : []));
    expect([...new Set(formats.filter((format) => typeof format === 'string'))]).toEqual(['date-time']);
  });

  it.each(withBody)('has an example of the body of $operationId that passes its check', (endpoint) => {
    const { operationId, body } = endpoint;
    if (body === undefined) throw new Error('filtered above');
    expect(BODY_EXAMPLES).toHaveProperty(operationId);
    const check = createBodyCompiler(BODY_FORMATS)(body);
    expect(() => check(BODY_EXAMPLES[operationId])).not.toThrow();
  });
});

it.each([...DOCUMENTED_ENDPOINTS])('the example of the response of $operationId is one', (endpoint) => {
  const ajv = new Ajv2020({ formats: { 'date-time': true }, strict: false });
  const validate = ajv.compile(closed(endpoint.response));
  validate(RESPONSE_EXAMPLES[endpoint.operationId]);
  expect(validate.errors ?? []).toEqual([]);
});

describe('the pattern that stands for the format', () => {
  const samples: Readonly<Record<string, fc.Arbitrary<string>>> = {
    'key-name': fc.string({ unit: codePoint, maxLength: 300 }),
    'stored-text': fc.string({ unit: codePoint }),
    'external-id': fc.string({ unit: codePoint, maxLength: 140 }),
    period: fc.stringMatching(/^[pP]?\d{0,3} ?(s|sec|minutes|Hour|d|M|T1H|w|year|)\w?$/),
    'path-pattern': fc.stringMatching(/^\/([a*.{}%2F/?#~ é]|\*\*|\{id\}|%2F)*$/),
    'utc-instant': fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    'ip-network': fc.oneof(fc.ipV4Extended(), fc.ipV6(), fc.stringMatching(/^(10|::)[.0:/]*\d*$/)),
    'page-origin': fc
      .tuple(fc.constantFrom('http://', 'https://'), fc.webAuthority({ withIPv4: true, withPort: true }))
      .map((parts) => URL.parse(parts.join(''))?.origin ?? parts.join('')),
  };

  it.each(Object.keys(BODY_FORMATS))('%s rejects nothing that the format accepts', (format) => {
    const isDocumented = documentedRule(format);
    fc.assert(
      fc.property(samples[format] ?? fc.string(), (text) => {
        fc.pre(BODY_FORMATS[format]?.(text) === true);
        expect(isDocumented(text)).toBe(true);
      }),
    );
  });

  it.each(['key-name', 'external-id', 'path-pattern'])('%s accepts nothing else', (format) => {
    const isDocumented = documentedRule(format);
    fc.assert(
      fc.property(samples[format] ?? fc.string(), (text) => {
        expect(isDocumented(text)).toBe(BODY_FORMATS[format]?.(text));
      }),
    );
  });
});

/** Whether a text of the format obeys the pattern and the lengths in the document. A format without a rule obeys nothing. */
function documentedRule(format: string): (text: string) => boolean {
  const rule = TEXT_RULES[format] ?? { pattern: '(?!)' };
  const { pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = rule;
  const expression = new RegExp(pattern, 'u');
  return (text) => {
    const length = [...text].length;
    return expression.test(text) && length >= minLength && length <= maxLength;
  };
}

/** The schema of JSON in a map of media types. */
function schemaOfJson(content: Record<string, unknown>): unknown {
  return (content['application/json'] as { readonly schema: unknown }).schema;
}

/** All objects within a value; not members of allOf, which complete the schema around them, nor dependent schemas, which are rules. */
function partsOf(value: unknown): readonly Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return [];
  const { allOf: _, dependentSchemas: __, ...others } = value as Record<string, unknown>;
  const parts = Object.values(others).flatMap(partsOf);
  return Array.isArray(value) ? parts : [value as Record<string, unknown>, ...parts];
}
