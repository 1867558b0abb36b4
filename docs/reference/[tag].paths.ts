import { readFileSync } from 'node:fs';

interface Document {
  readonly tags: readonly { readonly name: string; readonly description: string }[];
}

const { tags } = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')) as Document;

/** A page for each tag of the OpenAPI document. */
export default { paths: () => tags.map(({ name }) => ({ params: { tag: name } })) };
