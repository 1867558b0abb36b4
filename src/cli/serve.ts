import cluster from 'node:cluster';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { InvalidConfiguration } from '../app/invalid-configuration.ts';
import { filesOfPrimary } from '../app/workers/worker-messages.ts';
import { systemClock } from '../platform/clock.ts';
import { createLogger } from '../platform/logger.ts';
import type { Platform } from '../platform/platform.ts';
import { collectGarbage } from '../platform/process/collect-garbage.ts';
import { StartFault } from '../platform/process/start-fault.ts';
import { StartFiles } from '../platform/process/start-files.ts';
import { systemRandom } from '../platform/random.ts';
import { InvalidSettings, readSettings, type Settings } from '../settings/settings.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { StopSignals } from './stop-signals.ts';

/**
 * The directory in which Node caches compiled code for later starts. It is next to the code, because write access to either lets an
 * attacker change what runs. If it can't be written, nothing is cached. NODE_COMPILE_CACHE takes precedence; NODE_DISABLE_COMPILE_CACHE
 * turns caching off. `npm start` and the image set NODE_COMPILE_CACHE to the same directory: then this file and its imports are cached
 * too, and Node need not load its type stripper.
 */
const COMPILED_DIRECTORY = join(import.meta.dirname, '../../node_modules/.cache/tollgate');

const { files, isConfigured } = cluster.isWorker
  ? await filesOfPrimary()
  : { files: new StartFiles(), isConfigured: false };
const settings = settingsOrExit();
const log = createLogger(settings.logLevel);
enableCompileCache(COMPILED_DIRECTORY);
const signals = new StopSignals(log);
signals.endStart();
const gateway = await start({ clock: systemClock, random: systemRandom, log }).catch((error: unknown) => {
  if (error instanceof InvalidConfiguration) {
    process.stderr.write(`CONFIG_FILE: ${error.message}\n`);
    process.exit(EXIT_CODES.configuration);
  }
  if (error instanceof InvalidSettings) {
    process.stderr.write(`${error.message}\n`);
    process.exit(EXIT_CODES.configuration);
  }
  if (error instanceof StartFault) process.stderr.write(`${error.message}\n`);
  else log.fatal({ err: error }, 'could not start');
  process.exit(EXIT_CODES.fault);
});

signals.stopGateway(gateway);
// Only now: a signal would end a worker that does not handle it yet.
gateway.announce?.();

/** Imports only the code of this kind of process: the primary process of workers needs little of it. */
async function start(platform: Platform): Promise<{ stop(): Promise<boolean>; announce?(): void }> {
  if (process.argv.includes('--check')) await endAfterCheck();
  if (cluster.isWorker) {
    const { startWorker } = await import('../app/workers/worker.ts');
    await collectGarbage();
    // A worker that takes the place of another one must not undo a configuration that was applied since.
    return startWorker(isConfigured ? { ...settings, configFile: null } : settings, platform, files);
  }
  if (settings.workers > 1) {
    // Otherwise each worker would report the same fault, and be restarted. Workers get what is read here.
    await checkFiles();
    const { startWorkerGroup } = await import('../app/workers/worker-group.ts');
    return startWorkerGroup(settings, platform, files);
  }
  const { startSingleProcess } = await import('../app/single-process.ts');
  await collectGarbage();
  return startSingleProcess(settings, platform, files);
}

/** For `--check`: imports the code of every kind of process, so that Node compiles and caches all of it, and starts nothing. */
async function endAfterCheck(): Promise<never> {
  await checkFiles();
  await import('../app/single-process.ts');
  await import('../app/workers/worker-group.ts');
  await import('../app/workers/worker.ts');
  process.exit(0);
}

/** Reads the files that a start reads besides its settings. */
async function checkFiles(): Promise<void> {
  if (settings.portal === 'on') {
    const { preparePortal } = await import('../app/wiring/wire-portal.ts');
    await preparePortal(settings, files);
  }
  if (settings.configFile === null) return;
  const { readConfigurationFile } = await import('../app/configuration-file.ts');
  await readConfigurationFile(settings.configFile, settings.pathCase, files);
}

function settingsOrExit(): Settings {
  try {
    return readSettings(process.env, files);
  } catch (error) {
    if (!(error instanceof InvalidSettings)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(EXIT_CODES.configuration);
  }
}
