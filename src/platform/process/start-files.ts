import { readFileSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';

/** The contents of files in base64, by path: messages between processes are JSON. */
export type FileContents = Readonly<Record<string, string>>;

/**
 * The files that a start reads, each once. A worker gets the contents that its primary process has read, so that all workers of a gateway
 * have the same settings, whatever the files hold by then.
 */
export class StartFiles {
  readonly #contents: Map<string, Buffer>;

  constructor(contents: FileContents = {}) {
    this.#contents = new Map(
      Object.entries(contents).map(([path, content]) => [path, Buffer.from(content, 'base64')]),
    );
  }

  /** The content. Throws the error of the system. */
  readSync(path: string): Buffer {
    return this.#contents.get(path) ?? this.#keep(path, readFileSync(path));
  }

  /** The content, or its first `maxBytes`. Rejects with the error of the system. */
  async read(path: string, maxBytes?: number): Promise<Buffer> {
    const known = this.#contents.get(path);
    if (known !== undefined) return known;
    return this.#keep(path, await (maxBytes === undefined ? readFile(path) : readAtMost(path, maxBytes)));
  }

  /** All that was read so far. */
  contents(): FileContents {
    return Object.fromEntries(
      [...this.#contents].map(([path, content]) => [path, content.toString('base64')]),
    );
  }

  #keep(path: string, content: Buffer): Buffer {
    this.#contents.set(path, content);
    return content;
  }
}

/** The first bytes of a file, which may be a device without an end. */
async function readAtMost(path: string, maxBytes: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const bytes = Buffer.alloc(maxBytes);
    for (let length = 0; ; ) {
      const { bytesRead } = await file.read(bytes, length, maxBytes - length);
      length += bytesRead;
      if (bytesRead === 0 || length === maxBytes) return bytes.subarray(0, length);
    }
  } finally {
    await file.close();
  }
}
