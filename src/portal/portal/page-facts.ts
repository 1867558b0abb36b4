/** What the gateway has written into the page. */
export interface PageFacts {
  readonly name: string;
  readonly hasLogo: boolean;
  readonly docsUrl: string | null;
  readonly supportUrl: string | null;
  readonly selfServicePath: string;
  /** The address of the API. */
  readonly apiUrl: string;
}

/** Reads the facts of the page. */
export function pageFacts(): PageFacts {
  const content = document.querySelector<HTMLMetaElement>('meta[name="tollgate-portal"]')?.content ?? '{}';
  const facts = JSON.parse(content) as Partial<PageFacts> & { readonly publicUrl?: string | null };
  return {
    name: facts.name ?? '',
    hasLogo: facts.hasLogo ?? false,
    docsUrl: facts.docsUrl ?? null,
    supportUrl: facts.supportUrl ?? null,
    selfServicePath: facts.selfServicePath ?? '/tollgate/self',
    apiUrl: facts.publicUrl ?? location.origin,
  };
}
