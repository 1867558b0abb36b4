import type { AnswerSchema } from './endpoint.ts';

/** A whole number that is never negative. */
export const COUNT: AnswerSchema = { type: 'integer', minimum: 0 };

/** Text without further rules. */
export const TEXT: AnswerSchema = { type: 'string' };

/** `YYYY-MM-DDThh:mm:ssZ`, UTC, without fractions. */
export const INSTANT: AnswerSchema = {
  type: 'string',
  format: 'date-time',
  examples: ['2026-02-03T04:05:06Z'],
};

/** An object that always has all of these fields. */
export function objectOf(properties: Readonly<Record<string, AnswerSchema>>): AnswerSchema {
  return { type: 'object', required: Object.keys(properties), properties };
}

/** A list of equal items. */
export function listOf(items: AnswerSchema): AnswerSchema {
  return { type: 'array', items };
}

/** The value, or null where there is none. */
export function orNull(schema: AnswerSchema): AnswerSchema {
  return { anyOf: [schema, { type: 'null' }] };
}
