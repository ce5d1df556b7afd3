/** Small text formats that several rules ask about. */

export const isIpv4 = (text: string): boolean => {
  const parts = text.split('.');
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
};

/** RFC 4291 text, an embedded IPv4 address included. */
export function isIpv6(text: string): boolean {
  const halves = text.split('::');
  if (halves.length > 2 || !text.includes(':')) return false;
  let groups = 0;
  for (const [i, half] of halves.entries()) {
    if (half === '') continue;
    const parts = half.split(':');
    for (const [j, part] of parts.entries()) {
      const last = i === halves.length - 1 && j === parts.length - 1;
      if (last && part.includes('.')) {
        if (!isIpv4(part)) return false;
        groups += 2;
      } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups++;
      else return false;
    }
  }
  return halves.length === 2 ? groups < 8 : groups === 8;
}

export const isIp = (text: string): boolean => isIpv4(text) || isIpv6(text);

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
