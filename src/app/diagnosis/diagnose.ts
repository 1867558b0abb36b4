import { probeConnection } from '../../backend/probe-connection.ts';
import type { Platform } from '../../platform/platform.ts';
import type { Environment } from '../../settings/read-setting.ts';
import { InvalidSettings, readSettings, type Settings } from '../../settings/settings.ts';
import { failureReason } from '../../storage/failure-reason.ts';
import { readConfigurationFile } from '../configuration-file.ts';
import { InvalidConfiguration } from '../invalid-configuration.ts';
import { preparePortal } from '../wiring/wire-portal.ts';
import { checkRecords } from './check-records.ts';
import { checkRedis } from './check-redis.ts';
import { type Finding, findingsOf } from './finding.ts';

const ofSettings = findingsOf('settings');
const ofBackend = findingsOf('backend');
const BACKEND_DEADLINE_MS = 5000;

/**
 * Checks an installation from where a gateway with this environment would run: its settings and, if these are valid, its
 * `CONFIG_FILE`, the stores, the other replicas and the backend. Changes nothing, and never rejects because of what it finds.
 */
export async function diagnose(environment: Environment, platform: Platform): Promise<readonly Finding[]> {
  const settings = settingsOrFaults(environment);
  if (settings instanceof InvalidSettings)
    return settings.faults.map((sentence) =>
      ofSettings.fault(`${sentence}.`, 'Correct the environment; docs/settings.md describes every variable.'),
    );
  const [portal, configuration, records, redis, backend] = await Promise.all([
    checkPortal(settings),
    checkConfiguration(settings),
    checkRecords(settings, platform),
    checkRedis(settings, platform),
    checkBackend(settings),
  ]);
  return [
    ofSettings.ok('The settings are valid.'),
    ...portal,
    ...configuration,
    ...records,
    ...redis,
    backend,
  ];
}

function settingsOrFaults(environment: Environment): Settings | InvalidSettings {
  try {
    return readSettings(environment);
  } catch (error) {
    if (error instanceof InvalidSettings) return error;
    throw error;
  }
}

/** Reads the `CONFIG_FILE` as a start of the gateway does, which ends because of a fault in it. */
async function checkConfiguration({ configFile, pathCase }: Settings): Promise<readonly Finding[]> {
  if (configFile === null) return [];
  try {
    await readConfigurationFile(configFile, pathCase);
    return [ofSettings.ok('The CONFIG_FILE holds a valid configuration.')];
  } catch (error) {
    if (!(error instanceof InvalidConfiguration)) throw error;
    return error.faults.map((sentence) =>
      ofSettings.fault(
        `CONFIG_FILE ${configFile}: ${sentence}.`,
        'Correct CONFIG_FILE, or the file: the gateway does not start with this one.',
      ),
    );
  }
}

/** Reads the portal's logo as a start of the gateway does. */
async function checkPortal(settings: Settings): Promise<readonly Finding[]> {
  if (settings.portal === 'off' || settings.portalLogoFile === null) return [];
  try {
    await preparePortal(settings);
    return [ofSettings.ok('The PORTAL_LOGO_FILE holds a logo.')];
  } catch (error) {
    if (!(error instanceof InvalidSettings)) throw error;
    const fix = 'Correct PORTAL_LOGO_FILE, or the file: the gateway does not start with this one.';
    return error.faults.map((sentence) => ofSettings.fault(`${sentence}.`, fix));
  }
}

async function checkBackend({ backendUrl }: Settings): Promise<Finding> {
  if (backendUrl === null) return ofBackend.ok('There is no backend: the gateway only decides.');
  try {
    await probeConnection(backendUrl, BACKEND_DEADLINE_MS);
    const trust = backendUrl.protocol === 'https:' ? ', and its certificate is trusted' : '';
    return ofBackend.ok(`The backend ${backendUrl.host} can be reached${trust}.`);
  } catch (error) {
    return ofBackend.fault(
      `There is no connection to the backend ${backendUrl.host}: ${failureReason(error)}.`,
      'Start it, or correct BACKEND_URL or its certificate; until then requests get 502.',
    );
  }
}
