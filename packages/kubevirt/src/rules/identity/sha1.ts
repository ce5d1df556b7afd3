/** SHA-1 (FIPS 180-4), synchronous: WebCrypto's digest is not, and the rules that need one are pure functions. */
import { paddedMessage } from './padded-message.ts';

const rotate = (word: number, by: number): number => (word << by) | (word >>> (32 - by));

/** The 20-byte digest. For names and identifiers only: SHA-1 protects nothing. */
export function sha1(message: Uint8Array): Uint8Array {
  const view = paddedMessage(message);
  const state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  const words = new Int32Array(80);
  for (let offset = 0; offset < view.byteLength; offset += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(offset + i * 4);
    for (let i = 16; i < 80; i++) {
      words[i] = rotate(words[i - 3]! ^ words[i - 8]! ^ words[i - 14]! ^ words[i - 16]!, 1);
    }
    addBlock(state, words);
  }

  const digest = new Uint8Array(20);
  const out = new DataView(digest.buffer);
  state.forEach((word, i) => {
    out.setUint32(i * 4, word >>> 0);
  });
  return digest;
}

function addBlock(state: number[], words: Int32Array): void {
  let [a, b, c, d, e] = state as [number, number, number, number, number];
  for (let i = 0; i < 80; i++) {
    const [mix, constant] =
      i < 20
        ? [(b & c) | (~b & d), 0x5a827999]
        : i < 40
          ? [b ^ c ^ d, 0x6ed9eba1]
          : i < 60
            ? [(b & c) | (b & d) | (c & d), 0x8f1bbcdc]
            : [b ^ c ^ d, 0xca62c1d6];
    const next = (rotate(a, 5) + mix + e + constant + words[i]!) | 0;
    e = d;
    d = c;
    c = rotate(b, 30);
    b = a;
    a = next;
  }
  [a, b, c, d, e].forEach((word, i) => {
    state[i] = (state[i]! + word) | 0;
  });
}
