#!/usr/bin/env node
// Plain JavaScript that old versions of Node can read, too: the version is checked before anything else of ours is loaded. The range is that of
// `engines` in package.json; a test compares them.
import { existsSync } from 'node:fs';
import module from 'node:module';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major >= 26 || (major === 24 && minor >= 9)) {
  // Next to the code, because write access to either lets one change what runs. Where it can't be written, nothing is kept.
  module.enableCompileCache(new URL('../node_modules/.cache/tollgate', import.meta.url));
  // A clone has the source. An installed package has JavaScript, because Node strips no types below node_modules.
  const source = new URL('../src/cli/tollgate.ts', import.meta.url);
  const command = existsSync(source) ? source : new URL('../dist/cli/tollgate.js', import.meta.url);
  import(command.href).catch((error) => {
    const whatToDo = 'If a file or a package is missing, install it again, in a clone by `npm ci`.';
    process.stderr.write(`Tollgate could not be loaded. ${whatToDo}\n`);
    // Also where NODE_OPTIONS only warns of what is thrown. Only Node itself prints in which file an error of syntax is.
    process.exitCode = 1;
    throw error;
  });
} else {
  process.stderr.write(
    `Tollgate needs Node 24 (from 24.9 on) or 26, and this is Node ${process.versions.node}.\n`,
  );
  process.exitCode = 1;
}
