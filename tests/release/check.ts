import { readFileSync } from 'node:fs';
import semver from 'semver';
import { breakingChanges } from './breaking-changes.ts';
import { presentInterface } from './interface-record.ts';
import { readRecord, recordedReleases } from './recorded-release.ts';

// `npm run release:check`: compares the interface with that of the last release, and if that is this version with the one before. A breaking change needs a major version.
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const [newest, ...others] = recordedReleases();
if (newest === undefined)
  process.stdout.write(
    'No release is recorded yet, so nothing was compared. `npm run release:record` makes the record.\n',
  );
// The record of this version is there before its release, and says nothing of the release before it.
const before = newest === version ? others[0] : undefined;
const present = await presentInterface();
for (const release of [newest, before]) {
  if (release === undefined) continue;
  const changes = breakingChanges(readRecord(`docs/releases/${release}`), present);
  const isMajor = semver.major(version) > semver.major(release);
  for (const change of changes) process.stdout.write(`${change}\n`);
  process.stdout.write(
    changes.length === 0
      ? `Nothing of the interface of ${release} is broken.\n`
      : `${changes.length} breaking changes since ${release}${isMajor ? `, in the major version ${version}` : `: they need a major version, and this is ${version}`}.\n`,
  );
  if (changes.length > 0 && !isMajor) process.exitCode = 1;
}
