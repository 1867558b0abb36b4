/** The parts of a schema that bound the size of a value. */
interface SizedSchema {
  readonly description?: string;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly properties?: Readonly<Record<string, SizedSchema>>;
  readonly items?: SizedSchema;
  readonly additionalProperties?: SizedSchema | false;
}

/**
 * The paths of lists and objects with more elements than their schema allows, at most `most` paths. The elements of such a value are not
 * looked at: a validator would find a fault in each of millions, and take seconds.
 */
export function oversizedFields(
  value: unknown,
  schema: SizedSchema,
  most: number,
): readonly (readonly string[])[] {
  const found: (readonly string[])[] = [];
  const look = (part: unknown, of: SizedSchema | false | undefined, path: readonly string[]): void => {
    if (!of || typeof part !== 'object' || part === null || found.length === most) return;
    if (sizeOf(part) > mostIn(part, of)) found.push(path);
    else if (!describesParts(of, part)) return;
    else if (Array.isArray(part))
      for (const [index, item] of part.entries()) look(item, of.items, [...path, String(index)]);
    else for (const [name, field] of Object.entries(part)) look(field, fieldOf(of, name), [...path, name]);
  };
  look(value, schema, []);
  return found;
}

/** An object with up to this many unknown fields is left to the validator, which names them: they may be misspelt. */
const UNKNOWN_FIELDS = 50;

function sizeOf(part: object): number {
  return Array.isArray(part) ? part.length : Object.keys(part).length;
}

function mostIn(
  part: object,
  { maxItems, maxProperties, properties, additionalProperties }: SizedSchema,
): number {
  if (Array.isArray(part)) return maxItems ?? Number.POSITIVE_INFINITY;
  if (maxProperties !== undefined) return maxProperties;
  return additionalProperties === false
    ? Object.keys(properties ?? {}).length + UNKNOWN_FIELDS
    : Number.POSITIVE_INFINITY;
}

/** Whether the schema describes the elements of a value. The validator rejects a list in the place of a string, whatever its size. */
function describesParts({ items, properties, additionalProperties }: SizedSchema, part: object): boolean {
  if (Array.isArray(part)) return items !== undefined;
  return properties !== undefined || (additionalProperties !== undefined && additionalProperties !== false);
}

function fieldOf(
  { properties = {}, additionalProperties }: SizedSchema,
  name: string,
): SizedSchema | false | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
}
