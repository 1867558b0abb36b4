import { isDeepStrictEqual } from 'node:util';
import { TEXT_RULES } from './text-rules.ts';

/** A JSON schema, or a keyword's value that contains schemas. */
type Schema = Readonly<Record<string, unknown>>;

/** Formats that JSON Schema defines. */
const STANDARD_FORMATS: ReadonlySet<unknown> = new Set(['date-time']);

/**
 * The named schemas of the document. Every object with fields has a name, so that generated code has readable type names: its `title`, or
 * else a name made from its position. Formats that only our own checks know are replaced by equivalent keywords.
 */
export class SchemaComponents {
  readonly #schemas = new Map<string, Schema>();

  /** All named schemas so far, by name. */
  all(): Readonly<Record<string, Schema>> {
    return Object.fromEntries([...this.#schemas].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The schema as the document uses it: a reference if it has fields. Throws if another schema has its name. */
  place(schema: Schema, fallbackName: string): Schema {
    const { title, ...untitled } = schema;
    const name = typeof title === 'string' ? title : fallbackName;
    const inner = this.#withoutNested(oneTypeEach(standardSchema(untitled)), name);
    if (title === undefined && !hasFields(schema)) return inner;
    const { description, ...content } = inner;
    this.#add(name, content);
    const reference = { $ref: `#/components/schemas/${name}` };
    return description === undefined ? reference : { ...reference, description };
  }

  #add(name: string, schema: Schema): void {
    const present = this.#schemas.get(name);
    if (present !== undefined && !isDeepStrictEqual(present, schema))
      throw new Error(`Two schemas of the OpenAPI document have the name ${name}.`);
    this.#schemas.set(name, schema);
  }

  #withoutNested(schema: Schema, name: string): Schema {
    return Object.fromEntries(
      Object.entries(schema).map(([keyword, value]) => [keyword, this.#placeIn(keyword, value, name)]),
    );
  }

  #placeIn(keyword: string, value: unknown, name: string): unknown {
    switch (keyword) {
      case 'properties':
        return Object.fromEntries(
          Object.entries(value as Schema).map(([field, schema]) => [
            field,
            this.place(schema as Schema, name + capitalized(field)),
          ]),
        );
      case 'items':
      case 'additionalProperties':
        return isSchema(value) ? this.place(value, `${name}Item`) : value;
      case 'anyOf':
        return (value as readonly Schema[]).map((schema) => this.place(schema, name));
      case 'allOf':
        return (value as readonly Schema[]).map((schema) =>
          schema.title === undefined ? this.#withoutNested(schema, name) : this.place(schema, name),
        );
      default:
        return value;
    }
  }
}

/** The text with its first letter in upper case. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function hasFields({ properties, allOf }: Schema): boolean {
  return properties !== undefined || allOf !== undefined;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null;
}

/** The keywords that apply to values of one type only. */
const KEYWORDS_OF: Readonly<Record<string, readonly string[]>> = {
  string: ['pattern'],
  integer: ['minimum', 'maximum'],
  array: ['items'],
};

/**
 * A schema with several types (`null` beside one does not count) as alternatives with one type each, because generators for Go and others
 * know no list of types. Throws for a type whose keywords are not in the table.
 */
function oneTypeEach(schema: Schema): Schema {
  const { type: types, ...rest } = schema;
  if (!Array.isArray(types) || types.filter((type) => type !== 'null').length < 2) return schema;
  const alternatives = types.map((type) => {
    const keywords = KEYWORDS_OF[type];
    if (keywords === undefined) throw new Error(`A schema has the type ${type} beside others.`);
    return { type, ...Object.fromEntries(Object.entries(rest).filter(([name]) => keywords.includes(name))) };
  });
  const ofOneType = Object.values(KEYWORDS_OF).flat();
  const shared = Object.entries(rest).filter(([keyword]) => !ofOneType.includes(keyword));
  return { ...Object.fromEntries(shared), anyOf: alternatives };
}

/** Replaces a format of ours by keywords, beside a pattern that the schema has. They apply only to strings, so that `null` still passes. */
function standardSchema(schema: Schema): Schema {
  const { format, ...others } = schema;
  if (format === undefined || STANDARD_FORMATS.has(format)) return schema;
  const rules = TEXT_RULES[String(format)];
  if (rules === undefined)
    throw new Error(`The format "${String(format)}" has no rules for the OpenAPI document.`);
  return { ...others, ...rules, ...(others.pattern !== undefined && { pattern: others.pattern }) };
}
