/** `spec.source.http.checksum` of a DataVolume: the algorithm and the digest, as CDI reads them. */

const HEX_LENGTH: Readonly<Record<string, number>> = { md5: 32, sha1: 40, sha256: 64, sha512: 128 };

/** Reads `ALGORITHM:HEX`; undefined for an algorithm that is not known, or a digest of another length. */
export function parseChecksum(text: string): { readonly algorithm: string; readonly hex: string } | undefined {
  const [algorithm = '', hex = '', ...more] = text.split(':').map((part) => part.trim().toLowerCase());
  const isSound = more.length === 0 && Object.hasOwn(HEX_LENGTH, algorithm) && /^[0-9a-f]+$/.test(hex);
  return isSound && hex.length === HEX_LENGTH[algorithm] ? { algorithm, hex } : undefined;
}
