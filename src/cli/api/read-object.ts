import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { CommandFault } from '../command-fault.ts';

/** A JSON or YAML object from a file; `-` is standard input. */
export async function readObject(path: string): Promise<Record<string, unknown>> {
  const content = await readContent(path);
  const value = content.trimStart().startsWith('{')
    ? parseJson(content, path)
    : await parseYaml(content, path);
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new CommandFault('usage', `${path} holds no object.`);
}

async function readContent(path: string): Promise<string> {
  try {
    const content = path === '-' ? await text(process.stdin) : await readFile(path, 'utf8');
    // Without the byte order mark that some editors write, and that is no part of JSON.
    return content.replace(/^\ufeff/, '');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new CommandFault('usage', `${path} can not be read (${code}).`, { cause: error });
  }
}

function parseJson(content: string, path: string): unknown {
  try {
    return JSON.parse(content);
  } catch (error) {
    throw new CommandFault('usage', `${path} is not valid JSON.`, { cause: error });
  }
}

async function parseYaml(content: string, path: string): Promise<unknown> {
  const { parse } = await import('yaml');
  try {
    // The value is as a body has it. An alias inside its own anchor makes a cycle, which JSON rejects.
    return JSON.parse(JSON.stringify(parse(content)));
  } catch (error) {
    throw new CommandFault('usage', `${path} is neither valid JSON nor valid YAML.`, { cause: error });
  }
}
