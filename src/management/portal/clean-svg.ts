import { createRequire } from 'node:module';
import type { SaxesTagNS } from 'saxes';
import { escapeMarkup } from '../../platform/text/escape-markup.ts';

const require = createRequire(import.meta.url);

const SVG = 'http://www.w3.org/2000/svg';
const XLINK = 'http://www.w3.org/1999/xlink';

/** Elements that draw, as SVG 2 names them. No script, no foreign content, no links, no animation, which could set an address later. */
const ELEMENTS = new Set(
  `svg g defs symbol use title desc path rect circle ellipse line polyline polygon text tspan textPath image style switch marker pattern
  mask clipPath linearGradient radialGradient stop filter feBlend feColorMatrix feComponentTransfer feComposite feConvolveMatrix
  feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge
  feMergeNode feMorphology feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence`.split(
    /\s+/,
  ),
);
/** What editors leave in a file: dropped with all that is in it. */
const DROPPED = new Set(['metadata']);
const FOREIGN_REFERENCE = 'the SVG must not refer to anything outside of the file';
/** Of the file itself, or a picture in it. */
const OWN_REFERENCE = /^\s*(?:#|data:image\/(?:png|jpeg|gif|webp)[;,])/i;

/**
 * An SVG of drawing elements alone, written again. What editors add in other namespaces is left out. Throws an `Error` for anything
 * that a browser could run or load, and for malformed XML: such a file is no logo, and a part of it is not what its owner wants to show.
 */
export function cleanSvg(text: string): string {
  // Loaded only for a logo.
  const { SaxesParser }: typeof import('saxes') = require('saxes');
  const parser = new SaxesParser({ xmlns: true });
  const written: string[] = [];
  let skipped = 0;
  let isOpen = false;
  const write = (part: string): void => {
    if (skipped === 0 && isOpen) written.push(part);
  };
  parser.on('error', () => {
    throw new Error('the SVG is not well-formed XML');
  });
  parser.on('doctype', (content) => {
    if (content.includes('[')) throw new Error('the SVG must not declare entities');
  });
  parser.on('opentag', (tag) => {
    if (!isOpen && (tag.uri !== SVG || tag.local !== 'svg'))
      throw new Error('the file is neither SVG nor PNG');
    isOpen = true;
    if (isDropped(tag) || skipped > 0) skipped += 1;
    write(openTag(tag, skipped > 0));
  });
  parser.on('closetag', ({ local }) => {
    write(`</${local}>`);
    if (skipped > 0) skipped -= 1;
  });
  parser.on('text', (part) => write(escapeMarkup(part)));
  parser.on('cdata', (part) => write(escapeMarkup(part)));
  parser.write(text).close();
  const content = written.join('');
  rejectReferences(content);
  return content;
}

/** Throws for an element that is dangerous, also where it would be dropped. */
function isDropped({ uri, local }: SaxesTagNS): boolean {
  if (uri !== SVG) {
    if (local.toLowerCase() === 'script') throw new Error('the SVG must not have the element <script>');
    return true;
  }
  if (DROPPED.has(local)) return true;
  if (!ELEMENTS.has(local)) throw new Error(`the SVG must not have the element <${local.slice(0, 40)}>`);
  return false;
}

function openTag({ local, attributes }: SaxesTagNS, isSkipped: boolean): string {
  if (isSkipped) return '';
  // A Map: a file may have both `href` and its older form `xlink:href`.
  const kept = new Map(local === 'svg' ? [['xmlns', SVG]] : []);
  for (const { uri, local: name, value } of Object.values(attributes)) {
    if (/^on/i.test(name)) throw new Error(`the SVG must not have the attribute ${name.slice(0, 40)}`);
    if (name === 'href' && !OWN_REFERENCE.test(value)) throw new Error(FOREIGN_REFERENCE);
    const isKept = uri === '' ? name !== 'xmlns' : uri === XLINK && name === 'href';
    if (isKept) kept.set(name, value);
  }
  const written = kept.entries().map(([name, value]) => ` ${name}="${escapeMarkup(value)}"`);
  return `<${local}${[...written].join('')}>`;
}

/** In styles and in attributes like `fill`. A backslash could write any of these words in another way. */
function rejectReferences(content: string): void {
  const references = content.matchAll(/url\(\s*(?:&quot;|&apos;|["'])?([^)]{0,40})/gi);
  const isForeign = [...references].some(([, target = '']) => !OWN_REFERENCE.test(target));
  if (isForeign || /@import|image-set|src\(|\\/i.test(content)) throw new Error(FOREIGN_REFERENCE);
}
