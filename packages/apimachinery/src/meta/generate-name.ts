/** generateName: names.go of apiserver. No vowels, so that no word appears by chance. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const MAX_NAME_LENGTH = 63;

/** How often a create is tried again when the generated name is taken. */
export const GENERATE_NAME_ATTEMPTS = 8;

/** `base`, cut to 58 characters, plus five random characters. */
export function generateName(base: string, random: (count: number) => Uint8Array = randomBytes): string {
  let suffix = '';
  while (suffix.length < SUFFIX_LENGTH) {
    for (const byte of random(SUFFIX_LENGTH * 2)) {
      // 27 does not divide 256: the few bytes beyond the last whole multiple are thrown away.
      if (byte < ALPHABET.length * 9 && suffix.length < SUFFIX_LENGTH) suffix += ALPHABET[byte % ALPHABET.length];
    }
  }
  return base.slice(0, MAX_NAME_LENGTH - SUFFIX_LENGTH) + suffix;
}

const randomBytes = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count));
