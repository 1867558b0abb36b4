import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Stage } from './with-tollgate.ts';

/** Imports of other gateways' keys into the gateway of a stage. */
export function foreignImports(stage: Stage) {
  return {
    /** An import, with its report. */
    async imported(source: string, path: string, ...options: readonly string[]) {
      const words = ['import', source, path, ...options, '-o', 'json'];
      const { code, stdout, stderr } = await stage.tollgate.run(words);
      return { code, stderr, report: stdout === '' ? undefined : JSON.parse(stdout) };
    },
    /** Writes a file of a test. Resolves with its path. */
    async file(name: string, content: string): Promise<string> {
      await mkdir(stage.directory, { recursive: true });
      const path = join(stage.directory, name);
      await writeFile(path, content);
      return path;
    },
  };
}
