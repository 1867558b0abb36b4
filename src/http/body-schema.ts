import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import { type FieldFault, InvalidBody } from '../errors.ts';

/** A field of a body: a JSON schema of a scalar whose `description` is the rule as a sentence, "must be …". */
export interface FieldSchema {
  readonly description: string;
  readonly [keyword: string]: unknown;
}

/** A body: one flat object. Fields that are not listed are ignored, so that newer clients can talk to older gateways. */
export interface BodySchema {
  readonly type: 'object';
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, FieldSchema>>;
}

/** Formats that schemas may name besides JSON Schema's keywords. */
export type Formats = Readonly<Record<string, (text: string) => boolean>>;

/** Checks a body. Throws `InvalidBody` with one fault for each field that breaks its rule. */
export type CheckBody = (body: unknown) => void;

/**
 * A compiler of body schemas: each is compiled once, when the app is built. Nothing is coerced and no default is filled in. All faults of
 * a body are listed; the schemas are flat and name every field that they look at, so their number is bounded. A schema is not held against
 * JSON Schema's own one, whose compilation takes longer than that of all of ours: a test does that for those that we have.
 */
export function createBodyCompiler(formats: Formats): (schema: BodySchema) => CheckBody {
  const ajv = new Ajv2020({
    strict: true,
    allErrors: true,
    allowUnionTypes: true,
    formats,
    meta: false,
    validateSchema: false,
  });
  return (schema) => {
    const validate = ajv.compile(schema);
    return (body) => {
      if (!validate(body)) throw new InvalidBody(faultsOf(validate.errors ?? [], schema));
    };
  };
}

/** One fault a field, even if it breaks several keywords: its rule is one sentence. */
function faultsOf(errors: readonly ErrorObject[], schema: BodySchema): readonly FieldFault[] {
  const messages = new Map<string, string>();
  for (const error of errors) {
    const missing = error.keyword === 'required';
    const field = missing ? String(error.params.missingProperty) : error.instancePath.slice(1);
    const rule = schema.properties[field]?.description;
    if (rule === undefined) messages.set('body', 'must be a JSON object');
    else messages.set(field, missing ? `is required and ${rule}` : rule);
  }
  return [...messages].map(([field, message]) => ({ field, message }));
}
