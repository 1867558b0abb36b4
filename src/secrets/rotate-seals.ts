import { type SecretVault, UnreadableSecret } from './secret-vault.ts';

/** Items of one query. */
const PAGE = 500;

/** Reads at most `limit` items after one of them, in an order that stays; undefined: the first ones. */
type ReadAfter<Item> = (last: Item | undefined, limit: number) => Promise<readonly Item[]>;

/** What is sealed with encryption keys. */
export interface SealedItems<Item> {
  readonly after: ReadAfter<Item>;
  /** Whether the item needs no other encryption key than the first. */
  readonly isCurrent: (item: Item) => boolean;
  /** Seals it with the first encryption key, unless it was changed meanwhile. */
  readonly seal: (item: Item) => Promise<unknown>;
  /** Gets each item that none of the encryption keys opens, perhaps twice. Such an item stays as it is. */
  readonly noteUnreadable: (item: Item) => void;
}

/** Gets the id of each record that none of the encryption keys opens, perhaps twice. Such a record stays as it is. */
export type NoteUnreadable = (id: string) => void;

/** All items, page by page. */
export async function* allItems<Item>(after: ReadAfter<Item>): AsyncGenerator<Item, void, undefined> {
  let page = await after(undefined, PAGE);
  while (page.length > 0) {
    yield* page;
    page = await after(page.at(-1), PAGE);
  }
}

/**
 * Seals all items with the first encryption key, while replicas run. Again and again until none is left: what is changed meanwhile may keep
 * its old seal. Resolves with the number of items that needed it, some of them perhaps twice.
 */
export async function rotateSeals<Item>(items: SealedItems<Item>): Promise<number> {
  const { after, isCurrent, seal, noteUnreadable } = items;
  let rotated = 0;
  let found: number;
  do {
    found = 0;
    for await (const item of allItems(after)) {
      if (isCurrent(item)) continue;
      if (await isRead(() => seal(item))) found += 1;
      else noteUnreadable(item);
    }
    rotated += found;
  } while (found > 0);
  return rotated;
}

/** Runs work. Resolves with false where it rejects with `UnreadableSecret`. */
export async function isRead(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof UnreadableSecret) return false;
    throw error;
  }
}

/** Rows that keep one sealed text each. */
export interface SealedRows<Row extends { readonly id: string | Buffer; readonly sealed: Buffer }> {
  /** At most `limit` rows, by id, after the given one. */
  after(id: Row['id'] | undefined, limit: number): Promise<readonly Row[]>;
  /** Replaces what a row keeps, unless it was removed or changed in the meantime. */
  replace(row: Row, sealed: Buffer): Promise<unknown>;
}

/** What seals rows again, and gets the ids of those that it can't open. */
interface RowSeal {
  readonly vault: Pick<SecretVault, 'isCurrent' | 'open' | 'seal'>;
  readonly noteUnreadable: NoteUnreadable;
}

/** As `rotateSeals`. `nameOf` is what the text of a row is sealed for. */
export function rotateSealedRows<Row extends { readonly id: string | Buffer; readonly sealed: Buffer }>(
  rows: SealedRows<Row>,
  nameOf: (id: Row['id']) => string,
  { vault, noteUnreadable }: RowSeal,
): Promise<number> {
  return rotateSeals<Row>({
    after: (last, limit) => rows.after(last?.id, limit),
    isCurrent: ({ sealed }) => vault.isCurrent(sealed),
    seal: (row) => {
      const name = nameOf(row.id);
      return rows.replace(row, vault.seal(name, vault.open(name, row.sealed)));
    },
    noteUnreadable: ({ id }) => noteUnreadable(typeof id === 'string' ? id : id.toString('hex')),
  });
}
