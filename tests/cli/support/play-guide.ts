import { execFile } from 'node:child_process';
import { delimiter } from 'node:path';
import { promisify } from 'node:util';
import { documentedCommands } from '../../support/documented-commands.ts';
import { putCommandInto } from './command-on-path.ts';

const run = promisify(execFile);

/** What a shell wrote until it ended. */
interface Played {
  readonly stdout: string;
  readonly stderr: string;
}

/** A reader of a guide, in a folder that is also their home. */
export class GuideReader {
  readonly #directory: string;
  readonly #environment: Readonly<Record<string, string>>;

  constructor(directory: string, environment: Readonly<Record<string, string>>) {
    this.#directory = directory;
    this.#environment = environment;
  }

  /** Puts `tollgate` where the reader's shell finds it. */
  async install(): Promise<void> {
    await putCommandInto(this.#directory);
  }

  /** Runs the blocks below a heading of a page in order, with other texts in place of its examples. Also resolves where a command fails. */
  async play(
    { page, heading }: { readonly page: string; readonly heading: string },
    { settings = {}, inPlaceOf = {} }: PlayOptions = {},
  ): Promise<Played> {
    const env = {
      ...this.#environment,
      ...settings,
      PATH: `${this.#directory}${delimiter}${process.env.PATH}`,
      HOME: this.#directory,
    };
    let script = (await documentedCommands(heading, page)).join('\n');
    for (const [example, text] of Object.entries(inPlaceOf)) {
      if (!script.includes(example)) throw new Error(`docs/${page} has no ${example} below "${heading}"`);
      script = script.replaceAll(example, text);
    }
    return run('sh', ['-c', script], { env, cwd: this.#directory }).catch((error) => error);
  }
}

interface PlayOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly inPlaceOf?: Readonly<Record<string, string>>;
}
