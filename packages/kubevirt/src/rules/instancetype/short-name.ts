/** Names that would be too long: cut, and made distinct by a digest (kubevirt pkg/instancetype/naming). */
import { sha256 } from '../identity/sha256.ts';

const DIGEST_LENGTH = 8;
const LABEL_VALUE_MAX = 63;
const OBJECT_NAME_MAX = 253;

const encoder = new TextEncoder();

function shorten(value: string, max: number): string {
  if (value.length <= max) return value;
  const digest = sha256(encoder.encode(value)).slice(0, DIGEST_LENGTH);
  return `${value.slice(0, max - DIGEST_LENGTH - 1)}-${digest}`;
}

/** A text as a label value. */
export const labelValue = (value: string): string => shorten(value, LABEL_VALUE_MAX);

/** A text as the name of an object. */
export const objectName = (value: string): string => shorten(value, OBJECT_NAME_MAX);
