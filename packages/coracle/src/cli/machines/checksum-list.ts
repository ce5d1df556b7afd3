/** A vendor's list of digests beside its images: `SHA256SUMS`, `CHECKSUM`, `FILE.sha512`. Pure. */

/** Lines that are read of one. */
const MAX_LINES = 10_000;
/** Algorithms by the length of their digests; weaker ones prove nothing. */
const ALGORITHMS: Readonly<Record<number, string>> = { 64: 'sha256', 128: 'sha512' };

/**
 * The digest of a file, as `ALGORITHM:HEX`: of the line that names it, as sha256sum or BSD's tools write it, or the only digest
 * of a list that names none. Undefined when it is not there.
 */
export function checksumIn(text: string, file: string): string | undefined {
  const digests = text
    .split('\n', MAX_LINES)
    .map((line) => line.trim())
    .flatMap((line) => {
      const [, ofBsd, bsdHex] = /^SHA\d+ ?\((.+)\) ?= ?([0-9a-f]+)$/i.exec(line) ?? [];
      const [, plainHex, ofPlain] = /^([0-9a-f]{64,128})(?:[ \t]+\*?(?:\.\/)?(.+))?$/i.exec(line) ?? [];
      const hex = (bsdHex ?? plainHex ?? '').toLowerCase();
      const algorithm = ALGORITHMS[hex.length];
      return algorithm === undefined ? [] : [{ name: ofBsd ?? ofPlain, checksum: `${algorithm}:${hex}` }];
    });
  const named = digests.find(({ name }) => name?.split('/').at(-1) === file);
  if (named) return named.checksum;
  const [only, ...more] = digests;
  return more.length === 0 && only?.name === undefined ? only?.checksum : undefined;
}
