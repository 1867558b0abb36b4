import type { CommandRecord, InterfaceRecord, OpenApi } from './interface-record.ts';
import { type JsonSchema, type Resolve, schemaChanges } from './schema-changes.ts';

type Plain = Readonly<Record<string, unknown>>;

const METHODS = ['get', 'put', 'post', 'patch', 'delete'];

/** What a program or an installation that was made for one interface could stumble over in another one, a sentence each. */
export function breakingChanges(before: InterfaceRecord, after: InterfaceRecord): readonly string[] {
  return [
    ...apiChanges(before.openapi, after.openapi),
    ...memberChanges('setting', before.settings, after.settings, (old, now) =>
      old.default === now.default ? [] : ['has another default'],
    ),
    ...memberChanges('metric', before.metrics, after.metrics, whereOther('is of another type')),
    ...memberChanges('command', before.commands, after.commands, commandChanges),
    ...memberChanges('chart value', before.chart, after.chart, whereOther('is of another kind')),
    ...memberChanges('error code', before.errors, after.errors, whereOther('has another status')),
    ...memberChanges('exit code', before.exitCodes, after.exitCodes, whereOther('is another number')),
    ...memberChanges('export of tollgate/client', before.client, after.client, (old, now) =>
      old === 'value' && now !== old ? ['is only a type'] : [],
    ),
    ...memberChanges('event', before.events, after.events, (old, now) =>
      schemaChanges('response', [old, now], { before: resolverOf(old), after: resolverOf(now) }),
    ),
  ];
}

function gone(kind: string, before: object, after: object): readonly string[] {
  return Object.keys(before)
    .filter((name) => !Object.hasOwn(after, name))
    .map((name) => `${kind} ${name}: is gone`);
}

/** Members that are gone, and what is changed in the others. */
function memberChanges<Member>(
  kind: string,
  before: Readonly<Record<string, Member>>,
  after: Readonly<Record<string, Member>>,
  changesOf: (old: Member, now: Member) => readonly string[],
): readonly string[] {
  return Object.entries(before).flatMap(([name, old]) => {
    const now = after[name];
    const changes = now === undefined ? ['is gone'] : changesOf(old, now);
    return changes.map((change) => `${kind} ${name}: ${change}`);
  });
}

function whereOther(change: string): (old: unknown, now: unknown) => readonly string[] {
  return (old, now) => (old === now ? [] : [change]);
}

function commandChanges(before: CommandRecord, after: CommandRecord): readonly string[] {
  const demanded = after.arguments.filter(
    (word, index) => word.startsWith('<') && before.arguments[index] !== word,
  );
  const fewer = after.arguments.length < before.arguments.length;
  return [
    ...before.options
      .filter((option) => !after.options.includes(option))
      .map((option) => `${option} is gone or takes another value`),
    ...demanded.map((word) => `${word} is required now`),
    ...(fewer ? ['takes fewer arguments'] : []),
  ];
}

function apiChanges(before: OpenApi, after: OpenApi): readonly string[] {
  const sides = { before: resolverOf(before), after: resolverOf(after) };
  return Object.entries(before.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method] !== undefined).flatMap((method) => {
      const operation = `${method.toUpperCase()} ${path}`;
      const now = after.paths[path]?.[method];
      if (now === undefined) return [`${operation}: is gone`];
      const old = methods[method] as Plain;
      return [
        ...parameterChanges(old, now as Plain, sides),
        ...bodyChanges(
          'request',
          [requestOf(old, sides.before), requestOf(now as Plain, sides.after)],
          sides,
        ),
        ...responseChanges(old, now as Plain, sides),
      ].map((change) => `${operation}: ${change}`);
    }),
  );
}

interface Sides {
  readonly before: Resolve;
  readonly after: Resolve;
}

function parameterChanges(before: Plain, after: Plain, sides: Sides): readonly string[] {
  const olds = parametersOf(before, sides.before);
  const nows = parametersOf(after, sides.after);
  return [
    ...gone('parameter', olds, nows),
    ...Object.entries(nows).flatMap(([name, now]) => {
      const old = olds[name];
      if (now.required === true && old?.required !== true) return [`parameter ${name}: is required now`];
      if (old === undefined) return [];
      const schemas = [objectOf(old.schema), objectOf(now.schema)] as const;
      return schemaChanges('request', schemas, sides).map((change) => `parameter ${name}: ${change}`);
    }),
  ];
}

function parametersOf({ parameters }: Plain, resolve: Resolve): Readonly<Record<string, Plain>> {
  const list = Array.isArray(parameters) ? parameters.map((parameter) => resolve(parameter)) : [];
  return Object.fromEntries(
    list.map((parameter) => [`${String(parameter.in)} ${String(parameter.name)}`, parameter]),
  );
}

function requestOf({ requestBody }: Plain, resolve: Resolve): Plain {
  return resolve(objectOf(requestBody));
}

/** The schemas of the media types of two bodies. */
function bodyChanges(
  direction: 'request' | 'response',
  [before, after]: readonly [Plain, Plain],
  sides: Sides,
): readonly string[] {
  const [olds, nows] = [objectOf(before.content), objectOf(after.content)];
  const demanded = direction === 'request' && after.required === true && before.required !== true;
  return [
    ...(demanded ? ['a body is required now'] : []),
    ...gone('media type', olds, nows),
    ...Object.keys(olds).flatMap((type) => {
      if (nows[type] === undefined) return [];
      const schemas = [objectOf(objectOf(olds[type]).schema), objectOf(objectOf(nows[type]).schema)] as const;
      return schemaChanges(direction, schemas, sides);
    }),
  ];
}

function responseChanges(before: Plain, after: Plain, sides: Sides): readonly string[] {
  const [olds, nows] = [objectOf(before.responses), objectOf(after.responses)];
  return [
    ...gone('response', olds, nows),
    ...Object.keys(olds).flatMap((status) => {
      if (nows[status] === undefined) return [];
      const bodies = [sides.before(objectOf(olds[status])), sides.after(objectOf(nows[status]))] as const;
      return [
        ...gone('header', objectOf(bodies[0].headers), objectOf(bodies[1].headers)),
        ...bodyChanges('response', bodies, sides),
      ].map((change) => `response ${status}: ${change}`);
    }),
  ];
}

/** Follows references within a document. */
function resolverOf(document: object): Resolve {
  return function resolve(schema: JsonSchema): JsonSchema {
    if (typeof schema.$ref !== 'string') return schema;
    const words = schema.$ref.replace(/^#\//, '').split('/');
    const target = words.reduce<unknown>((node, word) => objectOf(node)[word], document);
    return resolve(objectOf(target));
  };
}

function objectOf(value: unknown): Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Plain) : {};
}
