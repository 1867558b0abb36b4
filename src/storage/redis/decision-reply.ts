/** The numbers of an answer of the admit script; undefined for anything else. Numbers that were read already pass as they are. */
export function readNumbers(reply: unknown): readonly number[] | undefined {
  const numbers = typeof reply === 'string' ? reply.split(' ').map(Number) : reply;
  return areNumbers(numbers) ? numbers : undefined;
}

function areNumbers(items: unknown): items is readonly number[] {
  return Array.isArray(items) && items.every(Number.isFinite);
}
