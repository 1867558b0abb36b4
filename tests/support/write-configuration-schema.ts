import { writeFileSync } from 'node:fs';
import { CONFIGURATION_SCHEMA, configurationSchema } from './configuration-schema.ts';

// Writes docs/config.schema.json after a change to what a configuration may say; a test holds that the file is current.
writeFileSync(CONFIGURATION_SCHEMA, `${JSON.stringify(configurationSchema(), undefined, 2)}\n`);
