import type { ParsedUrlQuery } from 'node:querystring';
import { TollgateError } from '../errors.ts';
import type { FieldSchema } from '../http/body-schema.ts';

/** A parameter that breaks a rule: the end of a sentence about it. */
export class InvalidParameter extends TollgateError {
  readonly parameter: string;
  readonly rule: string;

  constructor(parameter: string, rule: string) {
    super('invalid_parameter', `The query parameter "${parameter}" ${rule}.`);
    this.parameter = parameter;
    this.rule = rule;
  }
}

/** Reads query parameters. All methods but `invalid` throw `InvalidParameter`, with the parameter's description as the rule. */
export interface QueryParameters<Name extends string> {
  /** Undefined if the parameter is missing. A repeated parameter breaks the rule. */
  readText(query: ParsedUrlQuery, name: Name): string | undefined;
  /** What `parse` makes of the text, undefined if the text breaks the rule; undefined if the parameter is missing. */
  readParsed<Value>(
    query: ParsedUrlQuery,
    name: Name,
    parse: (text: string) => Value | undefined,
  ): Value | undefined;
  /** A text that `isValid` accepts; undefined if the parameter is missing. */
  readValid(query: ParsedUrlQuery, name: Name, isValid: (text: string) => boolean): string | undefined;
  /** One of `words`; undefined if the parameter is missing. */
  readWord<const Word extends string>(
    query: ParsedUrlQuery,
    name: Name,
    words: readonly Word[],
  ): Word | undefined;
  /** The error for a parameter that breaks its rule, or the given rule. */
  invalid(name: Name, rule?: string): InvalidParameter;
}

/** The reader of the parameters that a query may have. */
export function queryParameters<Name extends string>(
  rules: Readonly<Record<Name, FieldSchema>>,
): QueryParameters<Name> {
  const invalid = (name: Name, rule: string = rules[name].description) => new InvalidParameter(name, rule);

  const readText = (query: ParsedUrlQuery, name: Name) => {
    const value = query[name];
    if (typeof value === 'string' || value === undefined) return value;
    throw invalid(name, 'must be given only once');
  };

  const readParsed: QueryParameters<Name>['readParsed'] = (query, name, parse) => {
    const text = readText(query, name);
    const value = text === undefined ? undefined : parse(text);
    if (text !== undefined && value === undefined) throw invalid(name);
    return value;
  };

  return {
    readText,
    readParsed,
    readValid: (query, name, isValid) =>
      readParsed(query, name, (text) => (isValid(text) ? text : undefined)),
    readWord: (query, name, words) => readParsed(query, name, (text) => words.find((word) => word === text)),
    invalid,
  };
}
