import { CommandFault } from '../command-fault.ts';

/** One of several that may have the same name. */
interface Named {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
}

type ReadPage<T> = (
  cursor: string | undefined,
) => Promise<{ readonly items: readonly T[]; readonly nextCursor?: string | undefined }>;

/** The one that has this id or this name. Throws where there is none, and with a list of them where several have the name. */
export async function oneByName<T extends Named>(
  what: string,
  idOrName: string,
  read: ReadPage<T>,
): Promise<T> {
  const found: T[] = [];
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await read(cursor);
    const one = items.find(({ id }) => id === idOrName);
    if (one !== undefined) return one;
    found.push(...items.filter(({ name }) => name === idOrName));
    cursor = nextCursor;
  } while (cursor !== undefined);
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
