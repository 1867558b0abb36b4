// Checks the version before importing our code, which an older Node may not understand. A Node without TypeScript support does not even
// start this file: it fails with ERR_UNKNOWN_FILE_EXTENSION. The range is that of `engines` in package.json; a test compares them.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major >= 26 || (major === 24 && minor >= 9)) {
  await import('./cli/serve.ts');
} else {
  process.stderr.write(
    `Tollgate needs Node 24 (from 24.9 on) or 26, and this is Node ${process.versions.node}. Use one of these, or \`npm start\`, which brings its own.\n`,
  );
  process.exitCode = 1;
}

export {};
