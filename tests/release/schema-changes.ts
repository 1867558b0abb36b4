export type JsonSchema = Readonly<Record<string, unknown>>;

/** Looks a `$ref` up in the document that it is in. */
export type Resolve = (schema: JsonSchema) => JsonSchema;

interface Sides {
  readonly before: Resolve;
  readonly after: Resolve;
}

/**
 * What breaks when a schema changes. In a request everything that was accepted must stay accepted; in a response, and in an event, everything
 * that was promised must stay true. New members, and new words of a closed set in a response, break nobody who ignores what he does not know.
 */
export function schemaChanges(
  direction: 'request' | 'response',
  [before, after]: readonly [JsonSchema, JsonSchema],
  sides: Sides,
): readonly string[] {
  return new Comparison(direction, sides).changes(before, after, '');
}

/** Keywords that reject more the smaller or the larger they are. */
const UPPER_BOUNDS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const LOWER_BOUNDS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const FORMS = ['pattern', 'format', 'const'];

class Comparison {
  readonly #direction: 'request' | 'response';
  readonly #sides: Sides;
  /** Schemas may hold themselves. */
  readonly #seen = new Set<string>();

  constructor(direction: 'request' | 'response', sides: Sides) {
    this.#direction = direction;
    this.#sides = sides;
  }

  changes(beforeRef: JsonSchema, afterRef: JsonSchema, path: string): readonly string[] {
    const pair = `${String(beforeRef.$ref)} ${String(afterRef.$ref)}`;
    if (beforeRef.$ref !== undefined && this.#seen.has(pair)) return [];
    this.#seen.add(pair);
    const before = this.#sides.before(beforeRef);
    const after = this.#sides.after(afterRef);
    const at = path === '' ? 'the body' : path;
    const own = this.#direction === 'request' ? narrowed(before, after, at) : widened(before, after, at);
    return [...own, ...this.#members(before, after, path), ...this.#parts(before, after, path)];
  }

  #members(before: JsonSchema, after: JsonSchema, path: string): readonly string[] {
    const [old, now] = [membersOf(before), membersOf(after)];
    const name = (member: string) => (path === '' ? member : `${path}.${member}`);
    const removed = Object.keys(old).filter((member) => now[member] === undefined);
    const isLoose = this.#direction === 'request' && after.additionalProperties !== false;
    const [neededBefore, neededAfter] = [requiredIn(before), requiredIn(after)];
    const demanded =
      this.#direction === 'request'
        ? neededAfter
            .filter((member) => !neededBefore.includes(member))
            .map((member) => `${name(member)} is required now`)
        : neededBefore
            .filter((member) => now[member] !== undefined && !neededAfter.includes(member))
            .map((member) => `${name(member)} may be missing now`);
    return [
      ...(isLoose ? [] : removed.map((member) => `${name(member)} is gone`)),
      ...demanded,
      ...Object.entries(old).flatMap(([member, schema]) =>
        now[member] === undefined ? [] : this.changes(schema, now[member], name(member)),
      ),
    ];
  }

  /** The items of a list, and the alternatives of a choice, which are compared in their order. */
  #parts(before: JsonSchema, after: JsonSchema, path: string): readonly string[] {
    const items =
      isSchema(before.items) && isSchema(after.items)
        ? this.changes(before.items, after.items, `${path}[]`)
        : [];
    const choices = ['oneOf', 'anyOf', 'allOf'].flatMap((keyword) => {
      const [old, now] = [before[keyword], after[keyword]];
      if (!Array.isArray(old) && !Array.isArray(now)) return [];
      const [olds, nows] = [Array.isArray(old) ? old : [], Array.isArray(now) ? now : []];
      const fewer = this.#direction === 'request' ? nows.length < olds.length : nows.length > olds.length;
      const count = fewer || keyword === 'allOf' ? nows.length !== olds.length : false;
      return [
        ...(count
          ? [`${path || 'the body'} has ${nows.length} alternatives where it had ${olds.length}`]
          : []),
        ...olds.flatMap((schema, index) =>
          nows[index] === undefined ? [] : this.changes(schema, nows[index], path),
        ),
      ];
    });
    return [...items, ...choices];
  }
}

/** What a request may no longer have. */
function narrowed(before: JsonSchema, after: JsonSchema, at: string): readonly string[] {
  const lostTypes =
    typesOf(after) === undefined
      ? []
      : (typesOf(before) ?? ['any']).filter((type) => !isAmong(type, typesOf(after)));
  const words = Array.isArray(after.enum) ? (Array.isArray(before.enum) ? before.enum : ['any']) : [];
  const lostWords = words.filter((word) => !(after.enum as readonly unknown[]).includes(word));
  const tighter = (keywords: readonly string[], isTighter: (now: number, old: number) => boolean) =>
    keywords.filter((keyword) => {
      const [old, now] = [before[keyword], after[keyword]];
      return typeof now === 'number' && (typeof old !== 'number' || isTighter(now, old));
    });
  const bounds = [
    ...tighter(UPPER_BOUNDS, (now, old) => now < old),
    ...tighter(LOWER_BOUNDS, (now, old) => now > old),
  ];
  const forms = FORMS.filter((keyword) => after[keyword] !== undefined && after[keyword] !== before[keyword]);
  const closed =
    after.additionalProperties === false &&
    before.additionalProperties !== false &&
    before.properties !== undefined;
  return [
    ...lostTypes.map((type) => `${at} may not be of type ${type} any more`),
    ...lostWords.map((word) => `${at} may not be ${JSON.stringify(word)} any more`),
    ...[...bounds, ...forms].map((keyword) => `${at} has another ${keyword}`),
    ...(closed ? [`${at} may have no further members any more`] : []),
  ];
}

/** What a response may have now that it could not have. */
function widened(before: JsonSchema, after: JsonSchema, at: string): readonly string[] {
  const promised = typesOf(before);
  if (promised === undefined) return [];
  return (typesOf(after) ?? ['any'])
    .filter((type) => !isAmong(type, promised))
    .map((type) => `${at} may be of type ${type} now`);
}

function typesOf({ type }: JsonSchema): readonly string[] | undefined {
  if (type === undefined) return undefined;
  return Array.isArray(type) ? type : [String(type)];
}

function isAmong(type: string, types: readonly string[] | undefined): boolean {
  return types?.includes(type) === true || (type === 'integer' && types?.includes('number') === true);
}

function membersOf({ properties }: JsonSchema): Readonly<Record<string, JsonSchema>> {
  return isSchema(properties) ? (properties as Readonly<Record<string, JsonSchema>>) : {};
}

function requiredIn({ required }: JsonSchema): readonly string[] {
  return Array.isArray(required) ? required : [];
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
