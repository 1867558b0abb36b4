import { createBodyCompiler } from '../http/body-schema.ts';
import { BODY_FORMAT_FAULTS, BODY_FORMATS } from './formats.ts';

/** Makes the check of a body. A process has one compiler, so that a schema is compiled once for all who check bodies by it. */
export const bodyCheck = createBodyCompiler(BODY_FORMATS, BODY_FORMAT_FAULTS);
