import { editDistance } from '../platform/text/did-you-mean.ts';
import type { Environment } from './read-setting.ts';

/** A unit at the end of a name: it may be missing or superfluous in a misspelt name. */
const UNIT = /_(?:MS|DAYS|FILE)$/;
/** Shorter names (HOST, PORT) differ by one letter or a unit from many that belong to other programs. */
const SHORTEST_COMPARED = 7;
/** Names of at least this length may have two wrong letters, shorter ones one. */
const LONG = 10;

/**
 * One sentence for each variable that is nearly the name of a setting which is not set: otherwise the variable would be ignored and the
 * setting's default would silently apply. If the setting itself is set, the other variable belongs to another program.
 */
export function misspeltVariables(environment: Environment, settings: readonly string[]): readonly string[] {
  const known = new Set(settings);
  const unset = settings.filter((name) => !environment[name]);
  return Object.keys(environment)
    .filter((name) => !known.has(name) && environment[name] !== '')
    .flatMap((name) => {
      const meant = unset.find((setting) => isNear(name.toUpperCase(), setting));
      return meant === undefined ? [] : [`${name}: is no setting; did you mean ${meant}?`];
    });
}

function isNear(name: string, setting: string): boolean {
  if (name === setting || name === setting.replace(UNIT, '')) return true;
  if (Math.min(name.length, setting.length) < SHORTEST_COMPARED) return false;
  if (name.replace(UNIT, '') === setting) return true;
  const allowed = setting.length < LONG ? 1 : 2;
  return Math.abs(name.length - setting.length) <= allowed && editDistance(name, setting) <= allowed;
}
