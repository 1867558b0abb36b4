/** The part of the package that the tests use. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface FoundAccount {
    readonly accountId: string;
    claims(): Readonly<Record<string, unknown>>;
  }

  // biome-ignore lint/style/noDefaultExport: the package has one.
  export default class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    use(middleware: (ctx: { body: unknown; path: string }, next: () => Promise<void>) => Promise<void>): void;
    callback(): (req: IncomingMessage, res: ServerResponse) => void;
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object): Promise<void>;
    readonly Grant: new (
      of: object,
    ) => {
      addOIDCScope(scope: string): void;
      addOIDCClaims(names: readonly string[]): void;
      save(): Promise<string>;
    };
  }
}
