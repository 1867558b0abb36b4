/** An internal file of undici, without types. If a release of undici moves it, the gateway fails to start. */
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici';
  export = buildConnector;
}
