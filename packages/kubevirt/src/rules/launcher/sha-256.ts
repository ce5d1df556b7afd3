/** SHA-256 (FIPS 180-4) of a short text, where Web Crypto's promise would be in the way. */

const isPrime = (n: number): boolean => {
  for (let k = 2; k * k <= n; k++) if (n % k === 0) return false;
  return true;
};
const PRIMES: readonly number[] = Array.from({ length: 312 }, (_, n) => n)
  .filter((n) => n > 1 && isPrime(n))
  .slice(0, 64);
/** The first 32 bits behind the point. */
const fraction = (x: number): number => ((x - Math.floor(x)) * 2 ** 32) | 0;
const K = PRIMES.map((p) => fraction(Math.cbrt(p)));
const FIRST = PRIMES.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
const turn = (x: number, by: number): number => (x >>> by) | (x << (32 - by));

/** Its digest, 64 hex digits. */
export function sha256Hex(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const state = [...FIRST];
  for (let at = 0; at < padded.length; at += 64) {
    const w = Array.from({ length: 16 }, (_, t) => view.getInt32(at + 4 * t));
    const word = (t: number): number => w[t] as number;
    for (let t = 16; t < 64; t++) {
      const [a, b] = [word(t - 15), word(t - 2)];
      const s0 = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3);
      const s1 = turn(b, 17) ^ turn(b, 19) ^ (b >>> 10);
      w[t] = (word(t - 16) + s0 + word(t - 7) + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state as [number, number, number, number, number, number, number, number];
    for (let t = 0; t < 64; t++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (K[t] as number) + word(t)) | 0;
      const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [a, b, c, d, e, f, g, h] = [(t1 + t2) | 0, a, b, c, (d + t1) | 0, e, f, g];
    }
    for (const [n, value] of [a, b, c, d, e, f, g, h].entries()) state[n] = ((state[n] as number) + value) | 0;
  }
  return state.map((n) => (n >>> 0).toString(16).padStart(8, '0')).join('');
}
