import { readFileSync } from 'node:fs';
import semver from 'semver';
import { breakingChanges } from './breaking-changes.ts';
import { presentInterface } from './interface-record.ts';
import { newestRelease, readRecord } from './recorded-release.ts';

// `npm run release:check`: compares the interface with that of the last release. A breaking change needs a major version.
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const last = newestRelease();
if (last === undefined) {
  process.stdout.write(
    'No release is recorded yet, so nothing was compared. `npm run release:record` makes the record.\n',
  );
} else {
  const changes = breakingChanges(readRecord(`docs/releases/${last}`), await presentInterface());
  const isMajor = semver.major(version) > semver.major(last);
  for (const change of changes) process.stdout.write(`${change}\n`);
  process.stdout.write(
    changes.length === 0
      ? `Nothing of the interface of ${last} is broken.\n`
      : `${changes.length} breaking changes since ${last}${isMajor ? `, in the major version ${version}` : `: they need a major version, and this is ${version}`}.\n`,
  );
  process.exitCode = changes.length === 0 || isMajor ? 0 : 1;
}
