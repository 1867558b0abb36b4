import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { presentInterface } from './interface-record.ts';
import { recordFiles } from './recorded-release.ts';

// `npm run release:record`: keeps the interface of the version of package.json, once it is final. The next versions are compared with it.
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const folder = `docs/releases/${version}`;
mkdirSync(folder, { recursive: true });
for (const [name, content] of recordFiles(await presentInterface()))
  writeFileSync(`${folder}/${name}`, content);
process.stdout.write(`The interface of ${version} is recorded in ${folder}.\n`);
