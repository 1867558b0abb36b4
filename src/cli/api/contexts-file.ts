import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { systemCodeOf } from '../../platform/system-code.ts';
import { CommandFault } from '../command-fault.ts';
import type { Terminal } from '../terminal.ts';

/** A gateway that someone administers: its address and the token for it. */
export interface Context {
  readonly url: string;
  readonly token: string;
}

export interface Contexts {
  /** The name of the context that is used if none is named; undefined if there is none. */
  readonly current: string | undefined;
  readonly contexts: Readonly<Record<string, Context>>;
}

/** The path of the contexts file: `TOLLGATE_CONTEXTS`, or `tollgate/contexts.json` in the user's configuration directory. */
export function contextsFile({ environment }: Terminal): string {
  const base = environment.XDG_CONFIG_HOME || join(environment.HOME || homedir(), '.config');
  return environment.TOLLGATE_CONTEXTS || join(base, 'tollgate', 'contexts.json');
}

/** Throws if others may read the file, or if its content is not valid. */
export function readContexts(file: string): Contexts {
  const content = contentOf(file);
  if (content === undefined) return { current: undefined, contexts: {} };
  // Windows does not keep permissions in the mode, and reports every file as readable.
  if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0)
    throw new CommandFault('fault', `${file} holds tokens and can be read by others: run chmod 600 ${file}`);
  const kept = parse(content);
  if (kept === undefined)
    throw new CommandFault('fault', `${file} holds no contexts: remove it, and run tollgate login again.`);
  return kept;
}

/** The fault for a name that no context has. */
export function noContext(kind: 'usage' | 'notFound', name: string): CommandFault {
  return new CommandFault(kind, `There is no context ${name}: tollgate context list shows those that are.`);
}

/**
 * Writes the file so that only its owner can ever read it, and readers see either the old or the new content, never a part. A symbolic link
 * stays one: the file that it leads to is written. Throws a `CommandFault` if that fails, and leaves the old content.
 */
export function writeContexts(file: string, contexts: Contexts): void {
  try {
    replaceFile(targetOf(file), `${JSON.stringify(contexts, null, 2)}\n`);
  } catch (error) {
    throw new CommandFault(
      'fault',
      `${file} can not be written (${systemCodeOf(error)}): set TOLLGATE_CONTEXTS to keep contexts in another file.`,
      { cause: error },
    );
  }
}

/** Where symbolic links lead, also to a file that does not exist yet. */
function targetOf(path: string): string {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path;
  return targetOf(resolve(realpathSync(dirname(path)), readlinkSync(path)));
}

function replaceFile(file: string, content: string): void {
  const next = `${file}.${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(next, content, { mode: 0o600 });
    chmodSync(next, 0o600);
    renameSync(next, file);
  } finally {
    // A part of the new content has tokens. After the renaming there is none.
    if (existsSync(next)) unlinkSync(next);
  }
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = systemCodeOf(error);
    // ENOTDIR: the home is no directory, such as /dev/null.
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new CommandFault('fault', `${file} can not be read (${code}).`, { cause: error });
  }
}

function parse(content: string): Contexts | undefined {
  try {
    const { current, contexts } = JSON.parse(content) as { current?: unknown; contexts?: unknown };
    if (typeof contexts !== 'object' || contexts === null) return undefined;
    const entries = Object.entries(contexts as Record<string, unknown>);
    if (!entries.every(([, context]) => isContext(context))) return undefined;
    return {
      current: typeof current === 'string' ? current : undefined,
      contexts: contexts as Record<string, Context>,
    };
  } catch {
    return undefined;
  }
}

function isContext(value: unknown): value is Context {
  if (typeof value !== 'object' || value === null) return false;
  return (
    'url' in value && typeof value.url === 'string' && 'token' in value && typeof value.token === 'string'
  );
}
