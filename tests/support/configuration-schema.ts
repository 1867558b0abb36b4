import { CONFIGURATION } from '../../src/management/configuration/configuration-schema.ts';
import { SchemaComponents } from '../../src/management/openapi/schema-components.ts';

export const CONFIGURATION_SCHEMA = new URL('../../docs/config.schema.json', import.meta.url);

/** The JSON schema of a configuration file, for editors: made of the schema that checks it, as the OpenAPI document is. */
export function configurationSchema(): object {
  const components = new SchemaComponents();
  const { description } = components.place(CONFIGURATION, '');
  const { Configuration, ...parts } = components.all();
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Tollgate configuration',
    description,
    ...Configuration,
    $defs: parts,
  };
  return JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/')) as object;
}
