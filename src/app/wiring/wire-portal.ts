import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestIds } from '../../http/request-id.ts';
import { withRequestId } from '../../http/with-request-id.ts';
import { createPortalApp } from '../../management/portal/portal-app.ts';
import { InvalidLogo, type Logo, readLogo } from '../../management/portal/read-logo.ts';
import { SELF_SERVICE_PATH } from '../../paths/path-matcher.ts';
import { StartFiles } from '../../platform/process/start-files.ts';
import { InvalidSettings, type Settings } from '../../settings/settings.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { RequestObservers } from '../request-observers.ts';
import { PORTAL_DIRECTORY } from './wire-management.ts';

interface PortalParts {
  readonly requestIds: RequestIds;
  readonly observers: Pick<RequestObservers, 'managed'>;
}

/** Builds the portal's handler of requests. */
export type WirePortal = (
  context: Pick<ReplicaContext, 'platform'>,
  parts: PortalParts,
) => (req: IncomingMessage, res: ServerResponse) => void;

/** Reads what the portal needs of files, once. Throws `InvalidSettings` for a file that is no logo. */
export async function preparePortal(settings: Settings, files = new StartFiles()): Promise<WirePortal> {
  const logo = await logoOf(settings, files);
  const { portalName, portalDocsUrl, portalSupportUrl, portalColor, publicUrl, selfServicePath } = settings;
  const brand = {
    ...{ logo, name: portalName, color: portalColor },
    ...{ docsUrl: portalDocsUrl, supportUrl: portalSupportUrl },
  };
  return ({ platform: { clock, log } }, { requestIds, observers }) => {
    const app = createPortalApp({
      ...{ brand, publicUrl, pages: PORTAL_DIRECTORY, log, clock },
      selfServicePath: selfServicePath ?? SELF_SERVICE_PATH,
    });
    return withRequestId(app, { requestIds, clock, onServed: observers.managed });
  };
}

async function logoOf({ portalLogoFile }: Settings, files: StartFiles): Promise<Logo | null> {
  if (portalLogoFile === null) return null;
  try {
    return await readLogo(portalLogoFile, files);
  } catch (error) {
    if (error instanceof InvalidLogo) throw new InvalidSettings([`PORTAL_LOGO_FILE: ${error.message}`]);
    throw error;
  }
}
