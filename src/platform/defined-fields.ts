/** The fields that are not undefined, in the same order. An optional field must be missing where it has no value. */
export function definedFields<Fields extends object>(fields: Fields): DefinedFields<Fields> {
  const defined: Record<string, unknown> = {};
  for (const name in fields) if (fields[name] !== undefined) defined[name] = fields[name];
  return defined as DefinedFields<Fields>;
}

type DefinedFields<Fields> = {
  readonly [Name in keyof Fields as undefined extends Fields[Name] ? never : Name]: Fields[Name];
} & {
  readonly [Name in keyof Fields as undefined extends Fields[Name] ? Name : never]?: Exclude<
    Fields[Name],
    undefined
  >;
};
