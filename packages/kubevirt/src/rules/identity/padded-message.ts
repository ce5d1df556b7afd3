/** What SHA-1 and SHA-256 read: the message, one bit, zeros, and its length in the last 8 bytes of a 64-byte block. */
export function paddedMessage(message: Uint8Array): DataView {
  const bits = message.length * 8;
  const padded = new Uint8Array((((message.length + 8) >> 6) + 1) * 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bits / 2 ** 32));
  view.setUint32(padded.length - 4, bits >>> 0);
  return view;
}
