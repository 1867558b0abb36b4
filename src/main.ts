import { InvalidSettings, readSettings, type Settings } from './config.ts';
import { systemClock } from './platform/clock.ts';
import { createLogger } from './platform/logger.ts';
import { systemRandom } from './platform/random.ts';
import { startService } from './service.ts';

/** Exit code of sysexits.h for a configuration that can't be used. */
const EX_CONFIG = 78;

const settings = settingsOrExit();
const log = createLogger(settings.logLevel);
const service = await startService(settings, { clock: systemClock, random: systemRandom, log }).catch(
  (error: unknown) => {
    log.fatal({ err: error }, 'could not start');
    process.exit(1);
  },
);

let stopping = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (stopping) {
      log.warn({ signal }, 'told to stop twice: not waiting any longer');
      process.exit(1);
    }
    stopping = true;
    log.info({ signal }, 'stopping');
    service.stop().then((clean) => process.exit(clean ? 0 : 1));
  });
}

function settingsOrExit(): Settings {
  try {
    return readSettings(process.env);
  } catch (error) {
    if (!(error instanceof InvalidSettings)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(EX_CONFIG);
  }
}
