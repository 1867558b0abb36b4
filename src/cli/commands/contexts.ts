import { noteVariables } from '../api/choose-gateway.ts';
import {
  type Contexts,
  changeContexts,
  contextsFile,
  noContext,
  readContexts,
} from '../api/contexts-file.ts';
import type { Declare } from '../declare.ts';
import { Output, type OutputOptions, writesData } from '../output/output.ts';

export const declareContext: Declare = (command, terminal) => {
  const list = command
    .command('list')
    .summary('List the contexts')
    .description('Lists the contexts, without their tokens.')
    .addHelpText('after', '\nExample:\n  tollgate context list -o id');
  writesData(list).action(async (options: OutputOptions) => {
    const { current, contexts } = readContexts(contextsFile(terminal));
    const rows = Object.entries(contexts).map(([name, { url }]) => ({
      name,
      url,
      current: name === current,
    }));
    await new Output(options, terminal).report(CONTEXT_LISTING, rows, rows);
    noteVariables({ current, contexts }, terminal);
  });
  command
    .command('use')
    .summary('Choose the context that is used where none is named')
    .description('Chooses the context that is used where none is named.')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  tollgate context use production')
    .action(async (name: string) => {
      const file = contextsFile(terminal);
      // Also before the change, which needs a directory that can be written.
      choose(name, readContexts(file));
      await changeContexts(file, (kept) => choose(name, kept));
      noteVariables(readContexts(file), terminal);
    });
};

function choose(name: string, { contexts }: Contexts): Contexts {
  if (!Object.hasOwn(contexts, name)) throw noContext('notFound', name);
  return { current: name, contexts };
}

const CONTEXT_LISTING = {
  columns: [
    { name: 'name', toCell: ({ name }: ContextRow) => name },
    { name: 'url', toCell: ({ url }: ContextRow) => url },
    { name: 'current', toCell: ({ current }: ContextRow) => (current ? 'yes' : '') },
  ],
  idOf: ({ name }: ContextRow) => name,
};

interface ContextRow {
  readonly name: string;
  readonly url: string;
  readonly current: boolean;
}
