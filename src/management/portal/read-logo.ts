import { StartFiles } from '../../platform/process/start-files.ts';
import { systemCodeOf } from '../../platform/system-code.ts';
import { decodeUtf8 } from '../../platform/text/utf8.ts';
import { cleanPng } from './clean-png.ts';
import { cleanSvg } from './clean-svg.ts';

/** A picture without anything that a browser could run or load. */
export interface Logo {
  readonly type: 'image/svg+xml' | 'image/png';
  readonly content: Buffer;
}

/** The file is no logo. The message says why, for an operator, and quotes nothing of the file but names of XML. */
export class InvalidLogo extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidLogo';
  }
}

const MAX_BYTES = 64 * 1024;
const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

/** Reads a logo. Goes by the content, not by the file's name. Throws `InvalidLogo`, also if the file can't be read. */
export async function readLogo(path: string, files = new StartFiles()): Promise<Logo> {
  const bytes = await files.read(path, MAX_BYTES + 1).catch(rejectUnreadable);
  if (bytes.length > MAX_BYTES) throw new InvalidLogo('the file has more than 64 KB');
  if (bytes.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE))
    return { type: 'image/png', content: cleaned(bytes, cleanPng) };
  const text = decodeUtf8(bytes);
  if (text === undefined || !/^\uFEFF?\s*</.test(text))
    throw new InvalidLogo('the file is neither SVG nor PNG');
  return { type: 'image/svg+xml', content: Buffer.from(cleaned(text, cleanSvg)) };
}

function cleaned<T>(content: T, clean: (content: T) => T): T {
  try {
    return clean(content);
  } catch (error) {
    throw new InvalidLogo(error instanceof Error ? error.message : String(error));
  }
}

function rejectUnreadable(error: unknown): never {
  const code = systemCodeOf(error);
  throw new InvalidLogo(`the file can not be read (${code})`);
}
