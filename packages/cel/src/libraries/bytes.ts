/** Bytes and text. */
import { CelEvaluationError } from '../errors.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const utf8Bytes = (text: string): Uint8Array => encoder.encode(text);

/** @throws CelEvaluationError when the bytes are not UTF-8 */
export function utf8Text(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new CelEvaluationError('invalid UTF-8 in bytes, cannot convert to string');
  }
}
