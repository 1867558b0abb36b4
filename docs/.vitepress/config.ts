import { defineConfig } from 'vitepress';
import OPENAPI from '../openapi.json' with { type: 'json' };

/** Where the links to code lead; the pages themselves have them relative, so that they work in a clone. */
const REPOSITORY = process.env.DOCS_REPOSITORY ?? 'https://github.com/tollgate/tollgate';

const page = (text: string, link: string) => ({ text, link: `/${link}` });

// The pages are those of docs/, one source for the site and the repository.
export default defineConfig({
  srcExclude: ['node_modules/**', 'notes/**'],
  outDir: '../dist/docs',
  cacheDir: 'node_modules/.vitepress',
  title: 'Tollgate',
  description: 'A self-hosted API gateway with keys, exact rate limits and usage',
  cleanUrls: true,
  // Links to files of the repository leave the site; every other dead link ends the build.
  ignoreDeadLinks: [/^\.?\/?(\.\.\/)+/, /^\.\/notes\//, /\.(json|jsonl|csv)$/],
  markdown: {
    config: (md) => {
      // Code like {{ .Values }} in the tables is text, not an expression of Vue.
      md.renderer.rules.code_inline = (tokens, index) =>
        `<code v-pre>${md.utils.escapeHtml(tokens[index]?.content ?? '')}</code>`;
      const open = md.renderer.rules.link_open;
      md.renderer.rules.link_open = (tokens, index, options, env, self) => {
        const token = tokens[index];
        const href = token?.attrGet('href') ?? '';
        const outside = /^(?:\.\/)?((?:\.\.\/)+|notes\/|[\w/.-]+\.(?:jsonl?|csv)$)/.test(href);
        if (token && outside && !href.startsWith('http')) {
          const path = href.replace(/^\.\//, '');
          const file = path.startsWith('../') ? path.replace(/^(\.\.\/)+/, '') : `docs/${path}`;
          token.attrSet('href', `${REPOSITORY}/blob/main/${file}`);
          return self.renderToken(tokens, index, options);
        }
        return open ? open(tokens, index, options, env, self) : self.renderToken(tokens, index, options);
      };
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      page('Start', 'protect-an-api'),
      page('API', 'api'),
      page('Settings', 'settings'),
      page('Comparison', 'comparison'),
    ],
    sidebar: [
      {
        text: 'Jobs',
        items: [
          page('Protect an API', 'protect-an-api'),
          page('Bill for usage', 'billing'),
          page('Behind nginx and others', 'authorize'),
          page('Move from Kong', 'migrate-from-kong'),
          page('Move from Tyk', 'migrate-from-tyk'),
          page('Move from Unkey', 'migrate-from-unkey'),
          page('Move from a middleware', 'migrate-from-middleware'),
          page('Comparison', 'comparison'),
        ],
      },
      {
        text: 'Use',
        items: [
          page('Designing limits', 'limits'),
          page('The console', 'console'),
          page('The portal', 'portal'),
          page('The command', 'cli'),
          page('The client', 'client'),
          page('Configuration as code', 'configuration-as-code'),
          page('Usage', 'usage'),
          page('Events', 'events'),
        ],
      },
      {
        text: 'Operate',
        items: [
          page('Operations', 'operations'),
          page('Helm chart', 'chart'),
          page('Sign-in', 'sign-in'),
          page('Without Kubernetes', 'without-kubernetes'),
          page('Runbook', 'runbook'),
          page('Reliability', 'reliability'),
          page('Performance', 'performance'),
          page('Sizing', 'sizing'),
          page('Scale', 'scale'),
          page('Stability', 'stability'),
        ],
      },
      {
        text: 'Reference of the API',
        collapsed: true,
        items: OPENAPI.tags.map(({ name }) => page(name, `reference/${name}`)),
      },
      {
        text: 'Look up',
        items: [
          page('API', 'api'),
          page('Settings', 'settings'),
          page('HTTP', 'http'),
          page('Metrics', 'metrics'),
          page('Glossary', 'glossary'),
          page('Architecture', 'architecture'),
        ],
      },
    ],
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
  },
});
