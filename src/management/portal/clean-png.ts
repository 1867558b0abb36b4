const SIGNATURE_BYTES = 8;
/** Length and name before a chunk's content, checksum behind it. */
const CHUNK_HEAD_BYTES = 8;
const CHECKSUM_BYTES = 4;
const MAX_PIXELS_A_SIDE = 4096;
/** The chunks that a picture needs. Comments, dates, places and animations are left out. */
const KEPT = new Set(['IHDR', 'PLTE', 'tRNS', 'gAMA', 'cHRM', 'sRGB', 'iCCP', 'IDAT', 'IEND']);

/** A PNG with only the chunks of its picture, and nothing behind its end. Throws an `Error` if it is malformed or too large. */
export function cleanPng(bytes: Buffer): Buffer {
  const parts = [bytes.subarray(0, SIGNATURE_BYTES)];
  let start = SIGNATURE_BYTES;
  for (;;) {
    if (start + CHUNK_HEAD_BYTES > bytes.length) throw new Error('the PNG is incomplete');
    const end = start + CHUNK_HEAD_BYTES + bytes.readUInt32BE(start) + CHECKSUM_BYTES;
    if (end > bytes.length) throw new Error('the PNG is incomplete');
    const name = bytes.toString('latin1', start + 4, start + CHUNK_HEAD_BYTES);
    if ((start === SIGNATURE_BYTES) !== (name === 'IHDR')) throw new Error('the PNG is malformed');
    if (name === 'IHDR') checkSize(bytes.subarray(start + CHUNK_HEAD_BYTES, end - CHECKSUM_BYTES));
    if (KEPT.has(name)) parts.push(bytes.subarray(start, end));
    if (name === 'IEND') return Buffer.concat(parts);
    start = end;
  }
}

/** A few bytes can stand for a picture that takes gigabytes in a browser. */
function checkSize(header: Buffer): void {
  if (header.length !== 13) throw new Error('the PNG is malformed');
  const sides = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (sides.some((side) => side === 0 || side > MAX_PIXELS_A_SIDE))
    throw new Error(`the PNG must have 1 to ${MAX_PIXELS_A_SIDE} pixels a side`);
}
