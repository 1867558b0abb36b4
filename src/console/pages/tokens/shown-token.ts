import type { components } from '../../../client/management-api.ts';

export type AdminToken = components['schemas']['AdminToken'];

/** What a dialog about a token gets. */
export interface TokenDialogProps {
  readonly token: AdminToken;
  readonly onClose: () => void;
}
