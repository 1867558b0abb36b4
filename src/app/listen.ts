import { StartFault } from '../platform/process/start-fault.ts';
import { systemCodeOf } from '../platform/system-code.ts';

/** A port, and the names of the settings that choose it. */
export interface Place {
  readonly port: number;
  readonly host: string;
  readonly portSetting: 'PORT' | 'ADMIN_PORT' | 'AUTHORIZE_PORT' | 'OPS_PORT';
  readonly hostSetting: 'HOST' | 'AUTHORIZE_HOST' | 'OPS_HOST';
}

/** Resolves with the result of `listen`. Rejects with a `StartFault` if the system does not allow the port or the host. */
export async function listenAt<Result>(
  { port, host, portSetting, hostSetting }: Place,
  listen: (port: number, host: string) => Promise<Result>,
): Promise<Result> {
  try {
    return await listen(port, host);
  } catch (error) {
    const noAddress = `This machine has no address ${host}: set ${hostSetting} to one that it has, or to 0.0.0.0 for all.`;
    const reasons: Readonly<Record<string, string>> = {
      EADDRINUSE: `Port ${port} of ${host} is in use by another process: stop it, or set ${portSetting} to another port.`,
      EACCES: `Port ${port} needs rights that this process has not: set ${portSetting} to a port from 1024 on.`,
      EADDRNOTAVAIL: noAddress,
      EAFNOSUPPORT: noAddress,
      EINVAL: `The address ${host} needs its interface, like ${host}%eth0: set ${hostSetting} to it, or to 0.0.0.0 for all.`,
      EAI_AGAIN: `The host name ${host} could not be looked up: set ${hostSetting} to an address of this machine.`,
      ENOTFOUND: `There is no host named ${host}: set ${hostSetting} to an address of this machine.`,
    };
    const reason = reasons[systemCodeOf(error)];
    throw reason === undefined ? error : new StartFault(reason, { cause: error });
  }
}
