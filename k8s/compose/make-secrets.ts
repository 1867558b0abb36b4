import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/**
 * Run by docker-compose.yml before anything else: makes the secrets of this installation once, each in a file that only the gateway's user can read
 * (Postgres's start script reads its password as root). The directory appears whole or not at all, so that an interrupted start leaves no half. Where
 * there are records already, new secrets would open none of them: then it ends with code 1.
 */
const { values } = parseArgs({
  options: {
    directory: { type: 'string', default: '' },
    'owned-by': { type: 'string', default: '' },
    'unless-in': { type: 'string', default: '' },
  },
});
const { directory, 'owned-by': owner, 'unless-in': records } = values;

if (existsSync(directory)) {
  say('The secrets made at the first start are used again.');
} else if (readdirSync(records).length > 0) {
  say('There is a database, but the secrets that open it are gone, and new ones would not.');
  say('Restore the volume `secrets`, or delete everything and start over: docker compose down --volumes');
  process.exit(1);
} else {
  make();
  say('Secrets were made for this installation.');
}
say(`The root token: docker compose exec gateway cat ${join(directory, 'ROOT_TOKEN')}`);

function make(): void {
  const password = randomBytes(24).toString('hex');
  const secrets = {
    ROOT_TOKEN: randomBytes(32).toString('hex'),
    ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    POSTGRES_PASSWORD: password,
    DATABASE_URL: `postgres://tollgate:${password}@postgres:5432/tollgate`,
  };
  const unfinished = `${directory}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished);
  for (const [name, secret] of Object.entries(secrets)) {
    const file = join(unfinished, name);
    writeFileSync(file, `${secret}\n`, { mode: 0o600, flush: true });
    chownSync(file, Number(owner), Number(owner));
  }
  renameSync(unfinished, directory);
}

function say(sentence: string): void {
  process.stdout.write(`${sentence}\n`);
}
