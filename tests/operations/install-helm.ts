import { installHelm } from './helm.ts';

// The first half of `npm run check:chart`.
await installHelm();
