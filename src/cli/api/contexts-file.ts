import {
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isObject } from '../../platform/is-object.ts';
import { systemCodeOf } from '../../platform/system-code.ts';
import { parsedJson } from '../../platform/text/parsed-json.ts';
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

/** A change takes milliseconds. */
const LOCK_ATTEMPTS = 20;
const LOCK_PAUSE_MS = 100;

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
 * Replaces what the file holds. One command at a time does so, and only the owner can ever read the file. Readers see either the old or the
 * new content, never a part. A symbolic link stays one: the file that it leads to is written. Rejects with a `CommandFault` if that fails,
 * and leaves the old content.
 */
export async function changeContexts(file: string, change: (kept: Contexts) => Contexts): Promise<void> {
  try {
    await replaceContexts(file, change);
  } catch (error) {
    if (error instanceof CommandFault) throw error;
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

/** The new content is written to a file beside it, whose existence keeps other commands from the same. */
async function replaceContexts(file: string, change: (kept: Contexts) => Contexts): Promise<void> {
  const target = targetOf(file);
  const lock = `${target}.lock`;
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  await createAlone(lock);
  try {
    writeFileSync(lock, `${JSON.stringify(change(readContexts(file)), null, 2)}\n`);
    renameSync(lock, target);
  } catch (error) {
    // A part of the new content has tokens.
    rmSync(lock, { force: true });
    throw error;
  }
}

/** Creates a file for its owner alone, and waits for a while if another command has created it. */
async function createAlone(path: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
      return;
    } catch (error) {
      if (systemCodeOf(error) !== 'EEXIST') throw error;
      if (attempt === LOCK_ATTEMPTS)
        throw new CommandFault(
          'fault',
          `Another command is changing the contexts. If none is, remove ${path}.`,
        );
    }
    await setTimeout(LOCK_PAUSE_MS);
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
  const kept = parsedJson(content);
  if (!isObject(kept) || !isObject(kept.contexts)) return undefined;
  const { current, contexts } = kept;
  if (!Object.values(contexts).every(isContext)) return undefined;
  return {
    current: typeof current === 'string' ? current : undefined,
    contexts: contexts as Readonly<Record<string, Context>>,
  };
}

function isContext(value: unknown): value is Context {
  return isObject(value) && typeof value.url === 'string' && typeof value.token === 'string';
}
