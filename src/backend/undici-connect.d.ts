/** A file of undici without types. Only a release of undici moves it, and then the gateway fails to start. */
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici';
  export = buildConnector;
}
