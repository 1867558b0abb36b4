import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { DOCUMENTED_ENDPOINTS } from '../../src/management/endpoints.ts';
import { openApiDocument } from '../../src/management/openapi/document.ts';

const JSON_TYPES = ['application/json', 'application/problem+json'];

interface Operation {
  readonly responses: Readonly<Record<string, unknown>>;
}

/** A response of the management interface or of self-service. */
interface Received {
  readonly status: number;
  /** The content type. */
  readonly type: string;
  readonly body: unknown;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const document: Document = JSON.parse(JSON.stringify(openApiDocument(DOCUMENTED_ENDPOINTS)));
const ajv = new Ajv2020({ formats: { 'date-time': true }, strict: false, allErrors: true });
/** By operation, status and content type. */
const validators = new Map<string, ValidateFunction>();

/**
 * Throws if the request is one of a documented operation, and its response in JSON has a field that the OpenAPI document does not name, or differs
 * from the document in another way.
 */
export function requireDocumented(
  method: string,
  target: string,
  { status, type: contentType, body }: Received,
): void {
  const [type = ''] = contentType.split(';');
  const path = templateOf(target);
  const responses = document.paths[path]?.[method.toLowerCase()]?.responses;
  if (responses === undefined || !JSON_TYPES.includes(type)) return;
  const name = [method, path, status, type].join(' ');
  const validate = validators.get(name) ?? ajv.compile(closed(schemaOf(responses[status], type)));
  validators.set(name, validate);
  if (validate(body)) return;
  const faults = validate.errors?.map(({ instancePath, message, params }) =>
    [instancePath, message, JSON.stringify(params)].join(' '),
  );
  throw new Error(`The response to ${name} is not as the OpenAPI document says:\n${faults?.join('\n')}`);
}

/** The path as the document names it. */
function templateOf(target: string): string {
  const [path = ''] = target.split('?');
  if (path in document.paths) return path;
  const matches = (template: string) =>
    new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
  return Object.keys(document.paths).find(matches) ?? path;
}

/** False, which nothing matches, where the document has no such response. */
function schemaOf(response: unknown, type: string): unknown {
  const { content = {} } = (resolved(response) ?? {}) as {
    readonly content?: Readonly<Record<string, { readonly schema?: unknown }>>;
  };
  return content[type]?.schema ?? false;
}

/** The same with the components of the document in place of references to them. */
function resolved(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(resolved);
  if (typeof part !== 'object' || part === null) return part;
  const { $ref, ...others } = part as Readonly<Record<string, unknown>>;
  const inner = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, resolved(value)]));
  return typeof $ref === 'string' ? { ...(resolved(componentOf($ref)) as object), ...inner } : inner;
}

function componentOf(reference: string): unknown {
  const [, ...names] = reference.split('/');
  return names.reduce<unknown>((part, name) => (part as Readonly<Record<string, unknown>>)[name], document);
}

/** The same schema with no room for fields that it does not name. */
export function closed(schema: unknown): boolean | object {
  return typeof schema === 'boolean' ? schema : (closedPart(schema) as object);
}

function closedPart(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closedPart);
  if (typeof part !== 'object' || part === null) return part;
  const { allOf, ...others } = part as Record<string, unknown>;
  const inner = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, closedPart(value)]));
  // The members of allOf complete each other.
  if (allOf !== undefined) return { ...inner, allOf, unevaluatedProperties: false };
  const { properties, additionalProperties } = others;
  const isField = typeof properties !== 'object' || additionalProperties !== undefined;
  return isField ? inner : { ...inner, additionalProperties: false };
}
