import { writeFileSync } from 'node:fs';
import { CLI_GUIDE, cliGuideWithCommands } from './cli-guide.ts';

// Writes the commands of `tollgate` into docs/cli.md after a change to one of them; a test holds that the file is current.
writeFileSync(CLI_GUIDE, await cliGuideWithCommands());
