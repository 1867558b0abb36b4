import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { brandStyles } from '../../src/management/portal/brand-styles.ts';
import { type Logo, readLogo } from '../../src/management/portal/read-logo.ts';

let folder: string;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-logo-'));
  file = join(folder, 'logo');
});
afterAll(() => rm(folder, { recursive: true }));

async function read(content: string | Buffer): Promise<Logo> {
  await writeFile(file, content);
  return readLogo(file);
}

const svg = (inner: string, attributes = ''): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ${attributes}>${inner}</svg>`;

function chunk(name: string, content: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(content.length);
  const named = Buffer.concat([Buffer.from(name), content]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(named));
  return Buffer.concat([head, named, checksum]);
}

function png({ width = 1, before = [] }: { width?: number; before?: readonly Buffer[] } = {}): Buffer {
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
  header.writeUInt32BE(width);
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
  const pixels = chunk('IDAT', deflateSync(Buffer.from([0, 255, 0, 0])));
  return Buffer.concat([signature, chunk('IHDR', header), ...before, pixels, chunk('IEND')]);
}

describe('a logo', () => {
  it('in SVG keeps what draws, and loses what editors leave in it', async () => {
    const drawing =
      '<defs><linearGradient id="g"><stop offset="0"/></linearGradient></defs>' +
      '<style>.a { fill: url(#g) }</style><g class="a"><path d="M0 0"/><use href="#p"/><text>A &amp; B</text></g>';
    const { type, content } = await read(
      `<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">` +
        svg(
          `<!-- made by hand --><metadata><r:RDF xmlns:r="urn:r"><r:a/></r:RDF></metadata><i:view xmlns:i="urn:i" i:zoom="2"/>` +
            drawing.replace('href', 'xlink:href'),
          'viewBox="0 0 1 1" xmlns:i="urn:i" i:version="1"',
        ),
    );
    expect(type).toBe('image/svg+xml');
    expect(content.toString()).toBe(
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">${drawing.replaceAll(/<(\w+)([^>]*)\/>/g, '<$1$2></$1>')}</svg>`,
    );
  });

  it.each([
    ['<script>alert(1)</script>', 'the element <script>'],
    ['<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>', 'the element <script>'],
    ['<metadata><script/></metadata>', 'the element <script>'],
    ['<rect onload="alert(1)"/>', 'the attribute onload'],
    ['<rect ONCLICK="alert(1)"/>', 'the attribute ONCLICK'],
    [
      '<foreignObject><p xmlns="http://www.w3.org/1999/xhtml"/></foreignObject>',
      'the element <foreignObject>',
    ],
    ['<a href="javascript:alert(1)"><rect/></a>', 'the element <a>'],
    ['<animate attributeName="href" to="https://evil.example"/>', 'the element <animate>'],
    ['<set attributeName="onload" to="alert(1)"/>', 'the element <set>'],
    ['<image href="https://evil.example/a.png"/>', 'outside of the file'],
    ['<image href="data:image/svg+xml,x"/>', 'outside of the file'],
    ['<use xlink:href="//evil.example#a"/>', 'outside of the file'],
    ['<rect fill="url(https://evil.example#a)"/>', 'outside of the file'],
    ['<rect style="fill:url( &quot;https://evil.example&quot;)"/>', 'outside of the file'],
    ['<style>@import "https://evil.example/a.css";</style>', 'outside of the file'],
    ['<style><![CDATA[a { fill: u\\72l(https://evil.example) }]]></style>', 'outside of the file'],
  ])('with %s is rejected, and the fault says why', async (inner, why) => {
    await expect(read(svg(inner))).rejects.toThrow(why);
  });

  it.each([
    ['entities', `<!DOCTYPE svg [<!ENTITY a "b">]>${svg('&a;')}`, 'must not declare entities'],
    ['malformed XML', svg('<g>'), 'not well-formed'],
    ['another document', '<html xmlns="http://www.w3.org/1999/xhtml"/>', 'neither SVG nor PNG'],
    ['another type', Buffer.from('GIF89a'), 'neither SVG nor PNG'],
    ['JPEG', Buffer.from([0xff, 0xd8, 0xff, 0xe0]), 'neither SVG nor PNG'],
    ['nothing', '', 'neither SVG nor PNG'],
    ['too much', svg(`<desc>${'a'.repeat(64 * 1024)}</desc>`), 'more than 64 KB'],
    ['half a PNG', png().subarray(0, 50), 'incomplete'],
    ['a PNG of many pixels', png({ width: 100_000 }), '4096 pixels'],
    ['a PNG that begins in another way', png().fill('IDAT', 12, 16), 'malformed'],
  ])('with %s is rejected', async (_what, content, why) => {
    await expect(read(content)).rejects.toThrow(why);
  });

  it('that can not be read is rejected', async () => {
    await expect(readLogo(`${file}.missing`)).rejects.toThrow('can not be read (ENOENT)');
    await expect(readLogo(folder)).rejects.toThrow('can not be read (EISDIR)');
  });

  it('in PNG keeps its pixels alone', async () => {
    const whole = png({ before: [chunk('tEXt', Buffer.from('Comment\0secret')), chunk('eXIf')] });
    const { type, content } = await read(Buffer.concat([whole, Buffer.from('<script>alert(1)</script>')]));
    expect([type, content.equals(png())]).toEqual(['image/png', true]);
  });
});

describe('a colour', () => {
  it('is darker or lighter where it would be hard to read, and black or white is written on it', () => {
    expect(brandStyles('#4f46e5')).toContain('--accent: light-dark(#4f46e5, ');
    expect(brandStyles('#4f46e5')).toMatch(/--accent-fill: #4f46e5;[\s\S]*--on-accent: #ffffff;/);
    expect(brandStyles('#ffff00')).toMatch(
      /--accent: light-dark\(#[0-8][^,]*, #ffff00\);[\s\S]*--on-accent: #000000;/,
    );
  });
});
