import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';

/** What the tests look at in a service of docker-compose.yml. */
export interface ComposeService {
  readonly image?: string;
  readonly build?: string;
  readonly profiles?: readonly string[];
  readonly user?: string;
  readonly depends_on?: readonly string[] | Readonly<Record<string, object>>;
  readonly ports?: readonly string[];
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly volumes?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly deploy?: { readonly replicas?: number };
  readonly stop_grace_period?: string;
}

/** docker-compose.yml with its anchors merged, and with the default of every variable. */
export async function readCompose(): Promise<{
  readonly services: Readonly<Record<string, ComposeService>>;
}> {
  const text = await readFile('docker-compose.yml', 'utf8');
  const withDefaults = text.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1');
  return parse(withDefaults, { merge: true }) as {
    readonly services: Readonly<Record<string, ComposeService>>;
  };
}
