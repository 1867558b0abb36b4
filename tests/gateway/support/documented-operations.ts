import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Scope } from '../../../src/permissions/scopes.ts';

/** An operation as `docs/openapi.json` describes it. */
export interface DocumentedOperation {
  readonly operationId: string;
  /** In capitals. */
  readonly method: string;
  readonly path: string;
  /** The parameters in the path, in order. */
  readonly pathParameters: readonly string[];
  readonly queryParameters: readonly string[];
  /** `managed`: by admin tokens, people and programs; `consumer`: by a consumer's key; `open`: needs no credential. */
  readonly audience: 'managed' | 'consumer' | 'open';
  /** What a managed operation needs. */
  readonly scopes: readonly Scope[];
  /** The example of its body. */
  readonly body: object | undefined;
}

interface DocumentedPart {
  readonly operationId: string;
  readonly security: readonly Readonly<Record<string, readonly Scope[]>>[];
  readonly parameters?: readonly { readonly in?: string; readonly name?: string; readonly $ref?: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: object }>> };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedPart>>>>;
  readonly components: {
    readonly parameters?: Readonly<Record<string, { readonly in: string; readonly name: string }>>;
  };
}

const METHODS: ReadonlySet<string> = new Set(['get', 'post', 'put', 'patch', 'delete']);

/** All operations of the document: a new endpoint is among them without a change of a test. */
export const DOCUMENTED_OPERATIONS = readOperations();

function readOperations(): readonly DocumentedOperation[] {
  const file = fileURLToPath(new URL('../../../docs/openapi.json', import.meta.url));
  const document = JSON.parse(readFileSync(file, 'utf8')) as Document;
  return Object.entries(document.paths).flatMap(([path, parts]) =>
    Object.entries(parts)
      .filter(([method]) => METHODS.has(method))
      .map(([method, part]) => operationOf(document, { method, path, part })),
  );
}

function operationOf(
  { components }: Document,
  { method, path, part }: { readonly method: string; readonly path: string; readonly part: DocumentedPart },
): DocumentedOperation {
  const { operationId, security, parameters = [], requestBody } = part;
  const named = parameters.map((each) =>
    each.$ref === undefined ? each : components.parameters?.[each.$ref.split('/').at(-1) ?? ''],
  );
  const managed = security.find((scheme) => scheme.adminToken !== undefined);
  return {
    ...{ operationId, path, method: method.toUpperCase() },
    pathParameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name),
    queryParameters: named.flatMap((each) => (each?.in === 'query' ? [each.name ?? ''] : [])),
    audience: security.length === 0 ? 'open' : managed === undefined ? 'consumer' : 'managed',
    scopes: managed?.adminToken ?? [],
    body: requestBody?.content['application/json']?.example,
  };
}
