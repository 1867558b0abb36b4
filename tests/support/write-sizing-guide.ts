import { writeFile } from 'node:fs/promises';
import { SIZING_GUIDE, sizingGuideWithFigures } from './sizing-guide.ts';

// Writes what `tollgate size` says into docs/sizing.md after a change to docs/scale.json; a test holds that the page is current.
await writeFile(SIZING_GUIDE, await sizingGuideWithFigures());
