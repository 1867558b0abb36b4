import type { components } from '../../../client/management-api.ts';

export type AdminToken = components['schemas']['AdminToken'];
