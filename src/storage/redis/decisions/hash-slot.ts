/** Hash slots of a Redis cluster. */
const SLOTS = 16_384;
/** CRC-16/XMODEM, which the cluster specification names. */
const POLYNOMIAL = 0x1021;
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc;
});

/** The slot of every Redis name whose hash tag is `tag`. The tag must be ASCII. */
export function hashSlotOf(tag: string): number {
  let crc = 0;
  for (let index = 0; index < tag.length; index += 1) {
    crc = ((crc << 8) ^ (TABLE[((crc >> 8) ^ tag.charCodeAt(index)) & 0xff] ?? 0)) & 0xffff;
  }
  return crc % SLOTS;
}
