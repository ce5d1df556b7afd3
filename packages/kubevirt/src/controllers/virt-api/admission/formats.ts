/** Small text formats that several rules ask about. */
import { type Address, parseAddress } from '@coracle/apimachinery/meta/ip-address';

/** IANA service name: at most 15 of [a-z0-9-], a letter among them, no dash at the ends or doubled. */
export const isPortName = (text: string): boolean =>
  text.length <= 15 &&
  /^[-a-z0-9]+$/.test(text) &&
  /[a-z]/.test(text) &&
  !text.includes('--') &&
  !text.startsWith('-') &&
  !text.endsWith('-');

/** Octets of an Ethernet address. */
export const MAC_OCTETS = 6;
const OCTETS = [MAC_OCTETS, 8, 20];

/** Octets of a hardware address (`02:..`, `02-..` or `0200.5e10.0001`), undefined when the text is none. */
export function octetsOf(text: string): number | undefined {
  const bytes = /^[0-9a-fA-F]{2}([:-])[0-9a-fA-F]{2}(\1[0-9a-fA-F]{2})*$/.test(text);
  const words = /^[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4})+$/.test(text);
  if (!bytes && !words) return undefined;
  const octets = text.replace(/[^0-9a-fA-F]/g, '').length / 2;
  return OCTETS.includes(octets) ? octets : undefined;
}

/** An address as it was read before Go 1.17, and is by KubeVirt: octets may begin with zeros (`0127.0.0.3`). */
export const looseAddress = (text: string): Address | undefined =>
  parseAddress(text.includes(':') ? text : text.replace(/(^|\.)0+(?=\d)/g, '$1'));
