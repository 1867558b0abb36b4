import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';

/** Whether V8 has an object where what lives for a moment only is collected cheaply. */
export function isInYoungGeneration(object: object): boolean {
  setFlagsFromString('--allow-natives-syntax');
  try {
    return (runInThisContext('(object) => %InYoungGeneration(object)') as (object: object) => boolean)(
      object,
    );
  } finally {
    setFlagsFromString('--no-allow-natives-syntax');
  }
}
