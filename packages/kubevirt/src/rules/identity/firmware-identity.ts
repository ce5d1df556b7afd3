/** UUIDs of machines: the one that follows from a name, and the form in which two of them are compared. */
import { hexOf } from '@coracle/apimachinery/meta/hex';
import { sha1 } from './sha1.ts';

/** Namespace of the UUIDs that follow from a name. */
const LEGACY_NAMESPACE = '6a1a24a1-4061-4607-8bf4-a3963d0c5895';

const encoder = new TextEncoder();

/** RFC 4122 version 5: the UUID of `name` within a namespace given as UUID text. */
export function uuidV5(namespace: string, name: string): string {
  const space = Uint8Array.from(namespace.replaceAll('-', '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  const text = encoder.encode(name);
  const input = new Uint8Array(space.length + text.length);
  input.set(space);
  input.set(text, space.length);
  const bytes = sha1(input).subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x50;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = hexOf(bytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/**
 * The UUID that follows from a virtual machine's name. The namespace of the object is not part of it: two machines of
 * one name share it, which is why it is no longer given to new ones (kubevirt pkg/virt-controller/watch/vm/firmware).
 */
export const legacyFirmwareUuid = (vmName: string): string => uuidV5(LEGACY_NAMESPACE, vmName);

/**
 * The one form of a UUID that is compared: lower case with hyphens. Upper case, no hyphens, braces, `urn:uuid:` and blanks
 * around it are the same UUID, as libvirt and QEMU read it. What is no UUID is compared as its text in lower case.
 */
export function canonicalUuid(text: string): string {
  // Nearly all are, and each event of a machine asks.
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text)) return text;
  const plain = text.trim().toLowerCase();
  const hex = plain
    .replace(/^urn:uuid:/, '')
    .replace(/^\{(.*)\}$/, '$1')
    .replaceAll('-', '');
  if (!/^[0-9a-f]{32}$/.test(hex)) return plain;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
