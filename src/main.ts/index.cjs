// What `node src/main.ts` runs: Node takes a directory for its index. Plain JavaScript, so that a Node that is too old for TypeScript says so in a
// sentence, and not with ERR_UNKNOWN_FILE_EXTENSION. The range is that of `engines` in package.json; a test compares them.
const parts = process.versions.node.split('.');
const major = Number(parts[0]);
const minor = Number(parts[1]);

if (major >= 26 || (major === 24 && minor >= 9)) {
  import('../cli/serve.ts');
} else {
  process.stderr.write(
    `Tollgate needs Node 24 (from 24.9 on) or 26, and this is Node ${process.versions.node}. Use one of these, or \`npm start\`, which brings its own.\n`,
  );
  process.exitCode = 1;
}
