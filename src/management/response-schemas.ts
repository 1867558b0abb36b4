import type { ResponseSchema } from './endpoint.ts';

/** A whole number that is never negative. */
export const COUNT: ResponseSchema = { type: 'integer', minimum: 0 };

/** Text without further rules. */
export const TEXT: ResponseSchema = { type: 'string' };

/** `YYYY-MM-DDThh:mm:ssZ`, UTC, without fractions. */
export const INSTANT: ResponseSchema = {
  type: 'string',
  format: 'date-time',
  examples: ['2026-02-03T04:05:06Z'],
};

/** An object that always has the first fields, and may have the others. */
export function objectOf(
  always: Readonly<Record<string, ResponseSchema>>,
  optional: Readonly<Record<string, ResponseSchema>> = {},
): ResponseSchema {
  return { type: 'object', required: Object.keys(always), properties: { ...always, ...optional } };
}

/** A list of equal items. */
export function listOf(items: ResponseSchema): ResponseSchema {
  return { type: 'array', items };
}

/** The value, or null if there is none. */
export function orNull(schema: ResponseSchema): ResponseSchema {
  return { anyOf: [schema, { type: 'null' }] };
}

/** A schema with a name in the OpenAPI document, and therefore in code generated from it. */
export function named(title: string, schema: ResponseSchema): ResponseSchema {
  return { title, ...schema };
}
