import { editDistance } from '../platform/text/nearest-name.ts';

/** What a name may be short of, or have too much of, and still be meant: the unit at its end. */
const UNIT = /_(?:MS|DAYS|FILE)$/;
/** Shorter names (HOST, PORT) are a letter away from many that belong to other programs. */
const SHORTEST_COMPARED = 7;
/** From here on two letters may be wrong, below it one. */
const LONG = 10;

/**
 * One sentence for each variable that is almost the name of a setting which is not set: it would be ignored, and the setting's default would apply
 * without a word. Where the setting itself is set, the other variable belongs to another program.
 */
export function misspeltVariables(
  environment: Readonly<Record<string, string | undefined>>,
  settings: readonly string[],
): readonly string[] {
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
  const allowed = setting.length < LONG ? 1 : 2;
  return Math.abs(name.length - setting.length) <= allowed && editDistance(name, setting) <= allowed;
}
