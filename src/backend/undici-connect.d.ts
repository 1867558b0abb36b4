/** A file of undici that has no types of its own. It moves with a release of undici only, and then no start succeeds. */
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici';
  export = buildConnector;
}
