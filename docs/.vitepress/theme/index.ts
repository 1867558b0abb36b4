import DefaultTheme from 'vitepress/theme';
import { theme, useOpenapi } from 'vitepress-openapi/client';
import 'vitepress-openapi/dist/style.css';
import spec from '../../openapi.json';

/** The default theme, with what shows the OpenAPI document on the pages of the reference. */
export default {
  extends: DefaultTheme,
  enhanceApp: (context: Parameters<typeof theme.enhanceApp>[0]) => {
    // Its examples need an address; the document itself is for any.
    useOpenapi({
      spec: { ...spec, servers: [{ url: 'http://localhost:8080' }] },
      config: { operation: { hiddenSlots: ['playground', 'code-samples', 'branding'] } },
    });
    theme.enhanceApp(context);
  },
};
