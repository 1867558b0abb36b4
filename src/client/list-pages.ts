/** The part of a query that chooses a page; empty for the first one. */
export interface PageCursor {
  readonly cursor?: string;
}

/** The pages of a list, one request each, until the last one: `read` gets the cursor of the page, to be a part of its query. */
export async function* pagesOf<Page extends { readonly nextCursor?: string | undefined }>(
  read: (cursor: PageCursor) => Promise<Page>,
): AsyncGenerator<Page> {
  let page = await read({});
  yield page;
  while (page.nextCursor !== undefined) {
    page = await read({ cursor: page.nextCursor });
    yield page;
  }
}
