import type { SeededRandom } from '../../chaos/seeded-random.ts';
import { type CallHead, type Dialect, FIELDS, messageOf } from './call-head.ts';

type Change = (head: CallHead, dialect: Dialect) => void;

/** What makes a call invalid: its response must be a 4xx, and nothing may be counted. */
export interface Spoil {
  readonly name: string;
  /** Of a call in a dialect that has fields for the original request; otherwise of every call. */
  readonly onlyFields?: boolean;
  readonly change?: Change;
  /** Applied to the bytes of the message. */
  readonly rewrite?: (message: string) => string;
}

export function pickSpoil(random: SeededRandom, dialect: Dialect): Spoil {
  return random.pick(SPOILS.filter(({ onlyFields }) => onlyFields !== true || dialect !== 'envoy'));
}

/** The bytes of a call that is invalid in one way. */
export function spoiltMessage({ change, rewrite }: Spoil, head: CallHead, dialect: Dialect): string {
  change?.(head, dialect);
  const message = messageOf(head);
  return rewrite === undefined ? message : rewrite(message);
}

/** What leaves the verdict as it is. */
export interface Frill {
  readonly name: string;
  readonly change: Change;
}

/** `other` is a whole call with a key that is good, as a body that must not be served. */
export function pickFrills(random: SeededRandom, other: string): readonly Frill[] {
  return frillsWith(other).filter(() => random.between(1, 6) === 1);
}

function eachField(index: 0 | 1, change: (head: CallHead, name: string) => void): Change {
  return (head, dialect) => {
    if (dialect !== 'envoy') change(head, FIELDS[dialect][index]);
  };
}

function inFields(name: string, index: 0 | 1, change: (head: CallHead, field: string) => void): Spoil {
  return { name, onlyFields: true, change: eachField(index, change) };
}

function setField(head: CallHead, name: string, value: string): void {
  for (const field of head.fields) if (field[0] === name) field[1] = value;
}

function withoutField(head: CallHead, name: string): void {
  head.fields = head.fields.filter(([field]) => field !== name);
}

const add =
  (name: string, ...values: readonly string[]): Change =>
  (head) =>
    void head.fields.push(...values.map((value): [string, string] => [name, value]));

const at =
  (target: string): Change =>
  (head) => {
    head.target = target;
  };

const TOKEN = 'Tollgate-Authorize-Token';

const SPOILS: readonly Spoil[] = [
  inFields('no method', 0, withoutField),
  inFields('no target', 1, withoutField),
  inFields('two methods', 0, (head, name) => void head.fields.push([name.toLowerCase(), 'GET'])),
  inFields('two targets', 1, (head, name) => void head.fields.push([name.toUpperCase(), '/free'])),
  inFields('method in lower case', 0, (head, name) => setField(head, name, 'get')),
  inFields('empty method', 0, (head, name) => setField(head, name, '')),
  inFields('two words as method', 0, (head, name) => setField(head, name, 'GET POST')),
  inFields('unknown method', 0, (head, name) => setField(head, name, 'FETCH')),
  inFields('CONNECT', 0, (head, name) => setField(head, name, 'CONNECT')),
  inFields('empty target', 1, (head, name) => setField(head, name, '')),
  inFields('relative target', 1, (head, name) => setField(head, name, 'free')),
  inFields('target of the other form', 1, (head, name) =>
    setField(head, name, name === 'X-Original-URL' ? '/free' : 'http://a.example/free'),
  ),
  inFields('a target with a space', 1, (head, name) => setField(head, name, '/free x')),
  inFields('a target with two values', 1, (head, name) => setField(head, name, '/free, /free')),
  inFields('a host with a query', 1, (head, name) =>
    setField(head, name, name === 'X-Original-URL' ? 'http://a?/free' : '?/free'),
  ),
  { name: 'no dialect', change: at('/authorize') },
  { name: 'an empty dialect', change: at('/authorize/') },
  { name: 'an unknown dialect', change: at('/authorize/nginx') },
  { name: 'a longer dialect', change: at('/authorize/originals') },
  { name: 'a longer envoy', change: at('/authorize/envoys/free') },
  { name: 'a path below a dialect', change: at('/authorize/original/free') },
  { name: 'an encoded dialect', change: at('/authorize/%6friginal') },
  { name: 'a dialect in capitals', change: at('/AUTHORIZE/original') },
  { name: 'a dialect behind a dot', change: at('/authorize/./original') },
  { name: 'a dialect behind two slashes', change: at('//authorize/original') },
  {
    name: 'the whole server',
    // With OPTIONS it is what HTTP asks of any server, and no call.
    change: (head) => Object.assign(head, { method: 'GET', target: '*' }),
  },
  { name: 'management', change: at('/consumer-api-key/list') },
  { name: 'no token', change: (head) => withoutField(head, TOKEN) },
  { name: 'another token', change: (head) => setField(head, TOKEN, 'another') },
  { name: 'two tokens', change: add(TOKEN, 'another') },
  { name: 'two hosts', change: add('Host', 'b.example') },
  { name: 'no host', change: (head) => withoutField(head, 'Host') },
  { name: 'two keys', change: add('x-api-key', 'a', 'b') },
  { name: 'two credentials', change: add('Authorization', 'Bearer a', 'Bearer b') },
  { name: 'a loop', change: add('Via', '1.1 tollgate') },
  { name: 'another expectation', change: add('Expect', 'nonsense') },
  { name: 'two lengths', change: add('Content-Length', '1', '2') },
  { name: 'no length', change: add('Content-Length', 'x') },
  {
    name: 'two framings',
    change: (head) => void head.fields.push(['Content-Length', '1'], ['Transfer-Encoding', 'chunked']),
  },
  { name: 'an unknown coding', change: add('Transfer-Encoding', 'br, chunked') },
  { name: 'no chunks', change: add('Transfer-Encoding', 'identity') },
  {
    name: 'many fields',
    change: (head) =>
      void head.fields.push(...Array.from({ length: 250 }, (_, i): [string, string] => [`X-${i}`, 'y'])),
  },
  { name: 'a large head', change: add('X-Large', 'y'.repeat(70_000)) },
  {
    name: 'a large target',
    change: (head, dialect) => at(`${head.target}?${'x'.repeat(70_000)}`)(head, dialect),
  },
  { name: 'a folded field', rewrite: (text) => text.replace('\r\nHost', '\r\n folded\r\nHost') },
  { name: 'a bare line feed', rewrite: (text) => text.replace('\r\nHost', '\r\nX: a\nHost') },
  { name: 'a NUL', rewrite: (text) => text.replace('\r\nHost', '\r\nX: a\0b\r\nHost') },
  { name: 'a space before a colon', rewrite: (text) => text.replace('\r\nHost:', '\r\nX : a\r\nHost:') },
  { name: 'a field without a colon', rewrite: (text) => text.replace('\r\nHost', '\r\nnonsense\r\nHost') },
  { name: 'another protocol', rewrite: (text) => text.replace(/ HTTP\/1\.[01]/, ' HTTP/2.0') },
  { name: 'no protocol', rewrite: (text) => text.replace(/ HTTP\/1\.[01]/, '') },
];

function frillsWith(other: string): readonly Frill[] {
  return [
    {
      name: 'fields of other dialects',
      change: (head, dialect) => {
        const own: readonly string[] = dialect === 'envoy' ? [] : FIELDS[dialect];
        for (const [names, value] of OTHERS) if (!own.includes(names)) head.fields.push([names, value]);
      },
    },
    {
      // Behind an upgrade that is declined, Node does not report a malformed head: the connection ends with a 408 after the head's timeout.
      name: 'an upgrade',
      change: (head) => void head.fields.push(['Connection', 'Upgrade, close'], ['Upgrade', 'websocket']),
    },
    { name: 'the last call', change: (head) => void head.fields.push(['Connection', 'close']) },
    {
      name: 'HTTP/1.0',
      change: (head) => {
        head.version = '1.0';
      },
    },
    {
      name: 'rejected=403',
      change: (head, dialect) => {
        if (dialect !== 'envoy') head.target += '?rejected=403';
      },
    },
    {
      name: 'a length without a body',
      change: (head) => {
        if (!hasFraming(head)) head.fields.push(['Content-Length', '1000']);
      },
    },
    {
      name: 'a call as a body',
      change: (head) => {
        if (hasFraming(head)) return;
        head.fields.push(['Content-Length', String(other.length)]);
        head.body = other;
      },
    },
    { name: 'fields in another order', change: (head) => void head.fields.reverse() },
    {
      name: 'a forged result',
      change: (head) => void head.fields.push(['Tollgate-Key-Id', 'forged'], ['Tollgate-Status', '200']),
    },
  ];
}

const OTHERS: readonly (readonly [string, string])[] = [
  ['X-Original-Method', 'GET'],
  ['X-Original-URI', '/free'],
  ['X-Original-URL', 'http://a.example/free'],
  ['X-Forwarded-Method', 'GET'],
  ['X-Forwarded-Uri', '/free'],
];

function hasFraming({ fields }: CallHead): boolean {
  return fields.some(([name]) => name === 'Content-Length');
}
