/** A message of server-sent events. */
export interface StreamMessage {
  /** What a client sends as `Last-Event-ID` to go on after this message; empty before the first id. */
  readonly id: string;
  /** Empty for a message that has only an id. */
  readonly data: string;
}

/** The messages of a stream of server-sent events, in the form in which the gateway writes them: fields `id` and `data`, and comments. */
export async function* messagesOf(chunks: AsyncIterable<string>): AsyncGenerator<StreamMessage> {
  let text = '';
  let id = '';
  for await (const chunk of chunks) {
    text += chunk;
    const blocks = text.split('\n\n');
    // Without its empty line a message is not complete.
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = block.split('\n').map(fieldOf);
      const ids = fields.filter(({ name }) => name === 'id');
      const data = fields.filter(({ name }) => name === 'data').map(({ value }) => value);
      id = ids.at(-1)?.value ?? id;
      if (ids.length > 0 || data.length > 0) yield { id, data: data.join('\n') };
    }
  }
}

function fieldOf(line: string): { readonly name: string; readonly value: string } {
  const [name = '', ...rest] = line.split(':');
  return { name, value: rest.join(':').replace(/^ /, '') };
}
