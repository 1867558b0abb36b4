import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { webhookSignature } from '../../../src/events/delivery/signature.ts';
import { documentedBlocks } from '../../support/documented-commands.ts';
import { endChild } from '../../support/end-child.ts';
import { type Fleet, startInProcessFleet } from '../../support/fleet.ts';
import { until } from '../../support/until.ts';

export const WEBHOOK_SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** The one program in a language that a page of docs/ has under a heading. */
export async function documentedProgram(page: string, heading: string, language: string): Promise<string> {
  const blocks = (await documentedBlocks(page)).filter(
    (block) => block.headings.includes(heading) && block.language === language,
  );
  const [block] = blocks;
  if (block === undefined || blocks.length > 1)
    throw new Error(`docs/${page} has ${blocks.length} programs in ${language} below "${heading}"`);
  return block.text;
}

/** A folder in which programs find the packages of this checkout. The caller must remove it. */
export async function programFolder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-receivers-'));
  await symlink(resolve('node_modules'), join(directory, 'node_modules'));
  return directory;
}

export async function removeFolder(directory: string | undefined): Promise<void> {
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
}

/** What a file of tests of receivers shares: the folder of their programs, and a gateway that may send to this machine. */
interface ReceiverStage {
  readonly directory: string;
  readonly fleet: Fleet;
}

/** Gives the calling file its stage. */
export function withReceiverStage(): ReceiverStage {
  const stage: { -readonly [Part in keyof ReceiverStage]?: ReceiverStage[Part] } = {};
  beforeAll(async () => {
    stage.directory = await programFolder();
    stage.fleet = await startInProcessFleet(1, {
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    });
  });
  afterAll(async () => {
    await stage.fleet?.stop();
    await removeFolder(stage.directory);
  });
  return stage as ReceiverStage;
}

/** A receiver of webhooks that a page documents, as a process. */
export class DocumentedReceiver {
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  #text = '';

  /** `command` is the program and the file's name. */
  constructor(
    directory: string,
    command: readonly string[],
    settings: Readonly<Record<string, string>> = {},
  ) {
    const [program = '', ...args] = command;
    this.#child = spawn(program, args, {
      cwd: directory,
      env: { PATH: process.env.PATH ?? '', PORT: '0', WEBHOOK_SECRET, ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#text + chunk).split('\n');
      this.#text = lines.pop() ?? '';
      this.#lines.push(...lines);
    });
  }

  static async start(
    directory: string,
    {
      file,
      text,
      program = process.execPath,
    }: { readonly file: string; readonly text: string; readonly program?: string },
    settings: Readonly<Record<string, string>> = {},
  ): Promise<DocumentedReceiver> {
    await writeFile(join(directory, file), text);
    const receiver = new DocumentedReceiver(directory, [program, file], settings);
    const failed = once(receiver.#child, 'exit').then(() => {
      throw new Error(`${file} ended before it listened`);
    });
    await Promise.race([until(() => receiver.#lines.length > 0), failed]);
    failed.catch(() => {});
    return receiver;
  }

  get url(): string {
    const [, port] = /^port (\d+)$/.exec(this.#lines[0] ?? '') ?? [];
    return `http://127.0.0.1:${port}/in`;
  }

  /** What it has printed for events. */
  get printed(): readonly string[] {
    return this.#lines.slice(1);
  }

  /** Sends a body as the gateway does, and resolves with the status of the response. */
  async send(
    body: string,
    { webhookId = 'dlv_1', timestamp = nowSeconds(), secrets = [WEBHOOK_SECRET] }: SendOptions = {},
  ): Promise<number> {
    const { status } = await fetch(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/cloudevents+json',
        'webhook-id': webhookId,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': webhookSignature(secrets, { webhookId, timestamp, body }),
      },
      body,
    });
    return status;
  }

  /** Sends the head and the beginning of the body of a request, and resolves with its connection. */
  async begin(): Promise<Socket> {
    const socket = connect(Number(new URL(this.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write('POST /in HTTP/1.1\r\nhost: receiver\r\ncontent-length: 100\r\n\r\n{');
    return socket;
  }

  /** SIGKILL. */
  stop(): Promise<void> {
    return endChild(this.#child);
  }
}

interface SendOptions {
  readonly webhookId?: string;
  /** Seconds since 1970. */
  readonly timestamp?: number;
  readonly secrets?: readonly string[];
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
