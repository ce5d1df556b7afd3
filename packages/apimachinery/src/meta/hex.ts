/** The bytes in lower-case hexadecimal digits, two for each (`Uint8Array.prototype.toHex`, which Node 24 lacks). */
export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
