import cluster from 'node:cluster';
import { InvalidSettings, readSettings, type Settings } from './config.ts';
import { systemClock } from './platform/clock.ts';
import { createLogger } from './platform/logger.ts';
import { systemRandom } from './platform/random.ts';
import { startSingleProcess } from './single-process.ts';
import { startWorker } from './worker.ts';
import { startWorkerGroup } from './worker-group.ts';

/** Exit code of sysexits.h for a configuration that can't be used. */
const EX_CONFIG = 78;

const settings = settingsOrExit();
const log = createLogger(settings.logLevel);
const start = cluster.isWorker ? startWorker : settings.workers > 1 ? startWorkerGroup : startSingleProcess;
const gateway = await start(settings, { clock: systemClock, random: systemRandom, log }).catch(
  (error: unknown) => {
    log.fatal({ err: error }, 'could not start');
    process.exit(1);
  },
);

let stopping = false;
// A terminal sends SIGINT to workers as well; the primary process tells them in its own way.
for (const signal of cluster.isWorker ? (['SIGTERM'] as const) : (['SIGTERM', 'SIGINT'] as const))
  process.on(signal, () => stop(signal));
if (cluster.isWorker) {
  process.on('SIGINT', () => {});
  process.on('disconnect', () => {
    if (!stopping) stop('the primary process is gone');
  });
}

function stop(reason: string): void {
  if (stopping) {
    log.warn({ reason }, 'told to stop twice: not waiting any longer');
    process.exit(1);
  }
  stopping = true;
  log.info({ reason }, 'stopping');
  gateway.stop().then((clean) => process.exit(clean ? 0 : 1));
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
