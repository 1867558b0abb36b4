/** What a row's target reaches in the backends that read it so. */
export type Resource = 'search' | 'batch' | 'item';

/** A target that some backend reads as a resource, with the rule of each such backend. */
export interface Spelling {
  readonly resource: Resource;
  /** POST for `search` and `batch`, GET for `item`, if missing. */
  readonly method?: string;
  readonly target: string;
  /** Programs that take the target for the resource, and where that is documented. Those that can be run here are run. */
  readonly readBy: Readonly<Record<string, string>>;
}

/** `search` is `/v1/search` and all below it, `batch` is `/v1/batch`, `item` is `/v1/items/{id}`. */
export const ROUTES: Readonly<Record<Resource, { readonly method: string; readonly path: string }>> = {
  search: { method: 'POST', path: '/v1/search/**' },
  batch: { method: 'POST', path: '/v1/batch' },
  item: { method: 'GET', path: '/v1/items/{id}' },
};

/** Programs that the test runs: the table names them for exactly the rows that they read so. */
export const RUN_HERE = ['nginx', 'Express'] as const;

const nginx = { nginx: 'https://nginx.org/en/docs/http/ngx_http_core_module.html#location' };
const Express = { Express: 'https://expressjs.com/en/5x/api.html#express.router' };
const Spring = {
  Spring:
    'https://docs.spring.io/spring-framework/docs/current/javadoc-api/org/springframework/http/server/PathContainer.html',
};
const SpringIgnoringCase = {
  'Spring, case ignored':
    'https://docs.spring.io/spring-framework/docs/current/javadoc-api/org/springframework/web/util/pattern/PathPatternParser.html',
};
const Tomcat = { 'Spring on Tomcat': 'https://tomcat.apache.org/tomcat-10.1-doc/config/http.html' };
const Rails = {
  Rails:
    'https://api.rubyonrails.org/classes/ActionDispatch/Journey/Router/Utils.html#method-c-normalize_path',
};
const RailsHead = { Rails: 'https://guides.rubyonrails.org/rails_on_rack.html' };
const Django = { Django: 'https://peps.python.org/pep-3333/#url-reconstruction' };
const DjangoIgnoringCase = {
  'Django, case ignored': 'https://docs.python.org/3/library/re.html#re.IGNORECASE',
};
const Go = { 'Go net/http': 'https://pkg.go.dev/net/http#hdr-Request_sanitizing-ServeMux' };
const GoMethods = { 'Go net/http': 'https://pkg.go.dev/net/http#hdr-Patterns-ServeMux' };
const AspNet = { 'ASP.NET': 'https://learn.microsoft.com/aspnet/core/fundamentals/routing' };
const Apache = { 'PHP behind Apache': 'https://httpd.apache.org/docs/2.4/mod/core.html#mergeslashes' };
const ApacheEncoded = {
  'PHP behind Apache': 'https://httpd.apache.org/docs/2.4/mod/core.html#allowencodedslashes',
};
const ApacheRewriting = {
  'PHP behind Apache, rewritten': 'https://httpd.apache.org/docs/2.4/rewrite/flags.html#flag_b',
};

const DECODING = { ...nginx, ...Spring, ...Django, ...Go, ...AspNet, ...Apache };

/** Every way that we know in which a request can be written so that a backend serves the resource. */
export const SPELLINGS: readonly Spelling[] = [
  // As the pattern has it.
  { resource: 'search', target: '/v1/search/x', readBy: { ...DECODING, ...Express, ...Rails } },
  { resource: 'search', target: '/v1/search', readBy: { ...DECODING, ...Express, ...Rails } },
  { resource: 'batch', target: '/v1/batch?id=1', readBy: { ...DECODING, ...Express, ...Rails } },
  { resource: 'item', target: '/v1/items/7', readBy: { ...DECODING, ...Express, ...Rails } },
  {
    resource: 'batch',
    target: 'http://api.example.com/v1/batch',
    readBy: { ...DECODING, ...Express, ...Rails },
  },
  // Percent-encoding.
  { resource: 'search', target: '/v1/%73earch/x', readBy: DECODING },
  { resource: 'search', target: '/%76%31/%73%65%61%72%63%68/x', readBy: DECODING },
  { resource: 'batch', target: '/v1/batc%68', readBy: DECODING },
  { resource: 'batch', target: '/%761/b%61tch?x', readBy: DECODING },
  { resource: 'item', target: '/v1/%69tems/7', readBy: DECODING },
  {
    resource: 'search',
    target: '/v1/search%2Fx',
    readBy: { ...nginx, ...Django, ...Tomcat, ...ApacheEncoded },
  },
  {
    resource: 'search',
    target: '/v1%2fsearch%2fx',
    readBy: { ...nginx, ...Django, ...Tomcat, ...ApacheEncoded },
  },
  { resource: 'batch', target: '/v1%2Fbatch', readBy: { ...nginx, ...Django, ...Tomcat, ...ApacheEncoded } },
  // An encoded slash as a part of one segment.
  {
    resource: 'item',
    target: '/v1/items/a%2Fb',
    readBy: { ...Express, ...Rails, ...Spring, ...Go, ...AspNet },
  },
  { resource: 'item', target: '/v1/%69tems/a%2Fb', readBy: { ...Spring, ...Go, ...AspNet } },
  { resource: 'item', target: '/V1/items/a%2Fb', readBy: { ...Express, ...AspNet } },
  // Slashes.
  { resource: 'search', target: '/v1//search/x', readBy: { ...nginx, ...Apache, ...Rails, ...Tomcat } },
  { resource: 'search', target: '//v1/search/x', readBy: { ...nginx, ...Apache, ...Rails, ...Tomcat } },
  {
    resource: 'search',
    target: '/v1/search//x',
    readBy: { ...nginx, ...Express, ...Apache, ...Rails, ...Django },
  },
  { resource: 'batch', target: '/v1///batch', readBy: { ...nginx, ...Apache, ...Rails, ...Tomcat } },
  { resource: 'batch', target: '/v1/%2Fbatch', readBy: { ...nginx, ...Tomcat, ...ApacheEncoded } },
  { resource: 'batch', target: '/v1/batch/', readBy: { ...Express, ...Rails, ...AspNet } },
  { resource: 'batch', target: '/v1/batch/?x=/', readBy: { ...Express, ...Rails, ...AspNet } },
  { resource: 'batch', target: '/v1/batch//', readBy: Rails },
  { resource: 'item', target: '/v1/items/7/', readBy: { ...Express, ...Rails, ...AspNet } },
  // Parameters of segments.
  { resource: 'search', target: '/v1/search;a=b/x', readBy: { ...Spring, ...Tomcat } },
  { resource: 'search', target: '/v1;jsessionid=1/search/x', readBy: { ...Spring, ...Tomcat } },
  { resource: 'batch', target: '/v1/batch;', readBy: { ...Spring, ...Tomcat } },
  { resource: 'batch', target: '/v1/batch;a=b;c=d,e', readBy: { ...Spring, ...Tomcat } },
  { resource: 'batch', target: '/;/v1/;a/batch', readBy: Tomcat },
  { resource: 'batch', target: '/v1/b%61tch;x=%2Fy', readBy: { ...Spring, ...Tomcat } },
  { resource: 'batch', target: '/v1%2Fbatch;x=%2Fy', readBy: Tomcat },
  {
    resource: 'batch',
    target: '/v1/batch%3Bx',
    readBy: { 'a filter before Spring': Tomcat['Spring on Tomcat'] },
  },
  {
    resource: 'search',
    target: '/v1;x%2Fsearch',
    readBy: { 'a server that decodes before Tomcat': nginx.nginx },
  },
  {
    resource: 'item',
    target: '/v1/items/;x',
    readBy: { ...nginx, ...Express, ...Rails, ...Django, ...Go, ...AspNet },
  },
  { resource: 'item', target: '/V1/items/;x', readBy: { ...Express, ...AspNet } },
  { resource: 'item', target: '/v1/%69tems/;x', readBy: { ...nginx, ...Django, ...Go, ...AspNet } },
  {
    resource: 'item',
    target: '/v1/%69tems/%3Bx',
    readBy: { ...nginx, ...Spring, ...Django, ...Go, ...AspNet },
  },
  { resource: 'item', target: '/v1;a/%69tems/%3Bx', readBy: Spring },
  { resource: 'item', target: '/v1%2Fitems/;x', readBy: { ...nginx, ...Django } },
  // Case.
  { resource: 'search', target: '/V1/Search/x', readBy: { ...Express, ...AspNet } },
  { resource: 'batch', target: '/v1/BATCH', readBy: { ...Express, ...AspNet } },
  { resource: 'batch', target: '/V1/BATCH/', readBy: { ...Express, ...AspNet } },
  { resource: 'batch', target: '/v1/%42atch', readBy: AspNet },
  { resource: 'search', target: '/v1/%C5%BFearch/x', readBy: DjangoIgnoringCase },
  { resource: 'item', target: '/v1/%C4%B1tems/7', readBy: DjangoIgnoringCase },
  { resource: 'item', target: '/V1/item%53/7', readBy: { ...AspNet, ...SpringIgnoringCase } },
  // Decoded twice: the decoded path becomes a part of another target.
  { resource: 'batch', target: '/v1/%2562atch', readBy: ApacheRewriting },
  { resource: 'batch', target: '/v1/%25%36%32atch', readBy: ApacheRewriting },
  { resource: 'search', target: '/v1%252Fsearch/x', readBy: ApacheRewriting },
  { resource: 'batch', target: '/v1/x/%252e%252e/batch', readBy: ApacheRewriting },
  { resource: 'batch', target: '/v1/x%252f..%252fbatch', readBy: ApacheRewriting },
  { resource: 'batch', target: '/v1/x%255c..%255cbatch', readBy: ApacheRewriting },
  { resource: 'batch', target: '/v1/batch%253Ba=b', readBy: ApacheRewriting },
  { resource: 'batch', target: '/v1/batch%3Fx=1', readBy: ApacheRewriting },
  { resource: 'batch', target: '/v1/batch%253Fx=1', readBy: ApacheRewriting },
  { resource: 'batch', target: '/v1/batch%23x', readBy: ApacheRewriting },
  // Methods.
  {
    resource: 'item',
    method: 'HEAD',
    target: '/v1/items/7',
    readBy: { ...nginx, ...Express, ...RailsHead, ...GoMethods, ...Spring },
  },
  { resource: 'item', method: 'HEAD', target: '/v1/%69tems/7;a', readBy: { ...nginx, ...Spring } },
];

/** What the gateway rejects, so that no backend reads it at all. */
export const REJECTED: readonly string[] = [
  'POST /v1/./batch',
  'POST /v1/x/../batch',
  'POST /v1/%2e/batch',
  'POST /v1/x/%2e%2e/batch',
  'POST /v1/x/.%2E/batch',
  'POST /v1/x/..;/batch',
  'POST /v1/x/..;a=b/batch',
  'POST /v1/x/..%3Ba/batch',
  'POST /v1/x%2F..%2Fbatch',
  'POST /v1/batch/.',
  'POST /v1\\batch',
  'POST /v1%5Cbatch',
  'POST /v1/batch%00',
  'POST /v1/batch%00.png',
  'POST /v1/batch%0A',
  'POST /v1/batch%7F',
  'POST /v1/batch#x',
  'POST /v1/b%u0061tch',
  'POST /v1/batch%',
  'POST /v1/batch%6',
  'POST v1/batch',
  'POST /v1/b\u00e4tch',
  'post /v1/batch',
  'Post /v1/batch',
];
