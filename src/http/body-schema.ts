import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { type FieldFault, InvalidBody, MAX_FAULTS } from '../errors.ts';
import { nameHint, shownName } from '../platform/text/did-you-mean.ts';
import { fieldName } from '../platform/text/field-name.ts';
import { oversizedFields } from './oversized-fields.ts';

/**
 * A field of a body: a JSON schema whose `description` is the rule as a sentence, "must be …". If it holds objects or lists of objects,
 * each nested field has a rule too, and a fault names the path to the field: `additionalLimits[1].period`.
 */
export interface FieldSchema {
  readonly description: string;
  readonly [keyword: string]: unknown;
}

/** A body: one object. A field that is not listed is a fault: a misspelt `expiresAt` must not make a key that never expires. */
export interface BodySchema {
  readonly type: 'object';
  readonly additionalProperties: false;
  /** At least this many fields. */
  readonly minProperties?: 1;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, FieldSchema>>;
}

/** A body with these fields, of which some are required. */
export function bodySchema<Field extends string>(
  required: readonly NoInfer<Field>[],
  properties: Readonly<Record<Field, FieldSchema>>,
): BodySchema {
  return { type: 'object', additionalProperties: false, required, properties };
}

/** The body of an edit: at least one of these fields. */
export function editSchema(properties: BodySchema['properties']): BodySchema {
  return { type: 'object', additionalProperties: false, minProperties: 1, required: [], properties };
}

/** Formats that schemas may name besides JSON Schema's keywords. */
export type Formats = Readonly<Record<string, (text: string) => boolean>>;

/** For formats with a long rule: the part that a text breaks, to be appended to the rule. Undefined for a text that has the format. */
export type FormatFaults = Readonly<Record<string, (text: string) => string | undefined>>;

/** Checks a body. Throws `InvalidBody` with one fault for each field that breaks its rule. */
export type CheckBody = (body: unknown) => void;

/**
 * A compiler of body schemas. Each is compiled once, for its first body: compiling all of them would take a fifth of the gateway's start.
 * Nothing is coerced and no default is filled in. All faults of a body are listed, up to a bound. Schemas are not checked against the
 * meta-schema of JSON Schema, which takes longer to compile than all of ours: a test does that.
 */
export function createBodyCompiler(
  formats: Formats,
  formatFaults: FormatFaults = {},
): (schema: BodySchema) => CheckBody {
  const ajv = new Ajv2020({
    strict: true,
    allErrors: true,
    allowUnionTypes: true,
    formats,
    meta: false,
    validateSchema: false,
    verbose: true,
  });
  return (schema) => {
    let validate: ValidateFunction | undefined;
    return (body) => {
      rejectOversized(body, schema);
      validate ??= ajv.compile(schema);
      if (!validate(body)) {
        throw new InvalidBody(faultsOf(validate.errors ?? [], schema, formatFaults));
      }
    };
  };
}

function rejectOversized(body: unknown, schema: BodySchema): void {
  const faults = oversizedFields(body, schema, MAX_FAULTS).map((steps) =>
    steps.length === 0
      ? { field: 'body', message: 'has too many fields that are not known here' }
      : { field: fieldName(steps), message: ruleOf(steps, schema) ?? 'is not valid' },
  );
  if (faults.length > 0) throw new InvalidBody(faults);
}

/** One fault a field, even if it breaks several keywords: its rule is one sentence. */
function faultsOf(
  errors: readonly ErrorObject[],
  schema: BodySchema,
  formatFaults: FormatFaults,
): readonly FieldFault[] {
  const messages = new Map<string, string>();
  for (const error of errors) {
    const { field, message } = faultOf(error, schema);
    const broken =
      error.keyword === 'format' ? formatFaults[error.params.format]?.(String(error.data)) : undefined;
    messages.set(field, broken === undefined ? message : `${message}; ${broken}`);
    // A body with lists could have thousands of faults.
    if (messages.size === MAX_FAULTS) break;
  }
  return [...messages].map(([field, message]) => ({ field, message }));
}

function faultOf(error: ErrorObject, schema: BodySchema): FieldFault {
  const steps = error.instancePath.split('/').slice(1).map(unescaped);
  if (error.keyword === 'required') {
    const missing = String(error.params.missingProperty);
    const path = [...steps, missing];
    return { field: fieldName(path), message: `is required and ${ruleOf(path, schema) ?? 'must be set'}` };
  }
  if (error.keyword === 'additionalProperties') {
    const unknown = String(error.params.additionalProperty);
    const known = Object.keys(nodeAt(steps, schema)?.properties ?? {});
    return {
      field: fieldName([...steps, shownName(unknown)]),
      message: `is not a field that is known here. ${nameHint(unknown, known)}`,
    };
  }
  if (error.keyword === 'minProperties' && steps.length === 0) {
    const fields = Object.keys(schema.properties).join(', ');
    return { field: 'body', message: `must have at least one of ${fields}` };
  }
  if (steps.length === 0) return { field: 'body', message: 'must be a JSON object' };
  return { field: fieldName(steps), message: ruleOf(steps, schema) ?? 'is not valid' };
}

/** The rule of the field at a path through objects and lists. */
function ruleOf(steps: readonly string[], schema: BodySchema): string | undefined {
  return nodeAt(steps, schema)?.description;
}

function nodeAt(steps: readonly string[], schema: BodySchema): SchemaNode | undefined {
  let at: SchemaNode | undefined = schema;
  for (const step of steps) {
    const isNamed = Object.hasOwn(at?.properties ?? {}, step);
    at = isNamed ? at?.properties?.[step] : (at?.items ?? (at?.additionalProperties || undefined));
  }
  return at;
}

/** The parts of a schema that `nodeAt` reads. */
interface SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly additionalProperties?: SchemaNode | false;
}

/** A step of a JSON pointer (RFC 6901 section 4). */
function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}
