import { type PageCursor, pagesOf } from '../../client/list-pages.ts';
import { CommandFault } from '../command-fault.ts';

/** An item whose name may not be unique. */
interface Named {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
}

interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string | undefined;
}

/** The item with this id or name, which is not empty. Throws if there is none; if several have the name, the error lists them. */
export async function oneByName<T extends Named>(
  what: string,
  idOrName: string,
  read: (cursor: PageCursor) => Promise<Page<T>>,
): Promise<T> {
  // A variable without a value in a script, and the description of every webhook that was given none.
  if (idOrName === '') throw new CommandFault('usage', `An empty word names no ${what}.`);
  const found: T[] = [];
  for await (const { items } of pagesOf(read)) {
    const one = items.find(({ id }) => id === idOrName);
    if (one !== undefined) return one;
    found.push(...items.filter(({ name }) => name === idOrName));
  }
  const [first, ...others] = found;
  if (first === undefined)
    throw new CommandFault('notFound', `There is no ${what} with the id or the name ${idOrName}.`);
  if (others.length === 0) return first;
  const lines = found.map(({ id, createdAt }) => `  ${id}  made ${createdAt}`);
  throw new CommandFault(
    'conflict',
    [`${found.length} ${what}s have the name ${idOrName}; name one by its id:`, ...lines].join('\n'),
  );
}
