import type { ParsedUrlQuery } from 'node:querystring';
import { TollgateError } from '../errors.ts';
import type { FieldSchema } from '../http/body-schema.ts';

/** Reads the parameters of a query. All but `invalid` throw `invalid_parameter`, with the rule that is the parameter's description. */
export interface QueryParameters<Name extends string> {
  /** Undefined when the parameter is missing. Given twice, it breaks its rule. */
  readText(query: ParsedUrlQuery, name: Name): string | undefined;
  /** One of the words; undefined when the parameter is missing. */
  readWord<const Word extends string>(
    query: ParsedUrlQuery,
    name: Name,
    words: readonly Word[],
  ): Word | undefined;
  /** The error for a parameter that breaks its rule, or the rule that is given. */
  invalid(name: Name, rule?: string): TollgateError;
}

/** The reader of the parameters that a query may have. */
export function queryParameters<Name extends string>(
  rules: Readonly<Record<Name, FieldSchema>>,
): QueryParameters<Name> {
  const invalid = (name: Name, rule: string = rules[name].description) =>
    new TollgateError('invalid_parameter', `The query parameter "${name}" ${rule}.`);

  const readText = (query: ParsedUrlQuery, name: Name) => {
    const value = query[name];
    if (typeof value === 'string' || value === undefined) return value;
    throw invalid(name, 'must be given only once');
  };

  const readWord = <const Word extends string>(
    query: ParsedUrlQuery,
    name: Name,
    words: readonly Word[],
  ): Word | undefined => {
    const text = readText(query, name);
    if (text === undefined) return undefined;
    const word = words.find((candidate) => candidate === text);
    if (word === undefined) throw invalid(name);
    return word;
  };

  return { readText, readWord, invalid };
}
