/** Why a text is no IP address or network, in the words of Go's net/netip. */
import { goQuote } from '../../meta/go-text.ts';

/** What ParseAddr says of a text that is no address. */
export function addressFault(text: string): string {
  const first = /[.:%]/.exec(text)?.[0];
  return `ParseAddr(${goQuote(text)}): ${reason(text, first)}`;
}

/** What ParsePrefix says of a text that is no network; `isAddress` tells whether its part before the slash is one. */
export function networkFault(text: string, isAddress: (text: string) => boolean): string {
  return `netip.ParsePrefix(${goQuote(text)}): ${prefixReason(text, isAddress)}`;
}

function prefixReason(text: string, isAddress: (text: string) => boolean): string {
  const slash = text.lastIndexOf('/');
  if (slash === -1) return "no '/'";
  const address = text.slice(0, slash);
  const zone = address.includes(':') ? address.indexOf('%') : -1;
  if (!isAddress(zone === -1 || zone === address.length - 1 ? address : address.slice(0, zone))) {
    return addressFault(address);
  }
  if (zone !== -1) return 'IPv6 zones cannot be present in a prefix';
  const bits = text.slice(slash + 1);
  return /^(?:[0-9]|[1-9][0-9]{1,18})$/.test(bits)
    ? 'prefix length out of range'
    : `bad bits after slash: ${goQuote(bits)}`;
}

const at = (message: string, rest: string): string => `${message} (at ${goQuote(rest)})`;

function reason(text: string, first: string | undefined): string {
  switch (first) {
    case '.':
      return quadFault(text) ?? 'unable to parse IP';
    case ':':
      return groupsFault(text);
    case '%':
      return 'missing IPv6 address';
    default:
      return 'unable to parse IP';
  }
}

/** Of four decimal numbers; undefined when nothing is wrong with them. */
function quadFault(text: string): string | undefined {
  let value = 0;
  let digits = 0;
  let dots = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char >= '0' && char <= '9') {
      if (digits === 1 && value === 0) return 'IPv4 field has octet with leading zero';
      value = value * 10 + Number(char);
      digits++;
      if (value > 255) return 'IPv4 field has value >255';
    } else if (char === '.') {
      if (i === 0 || i === text.length - 1 || text[i - 1] === '.') {
        return at('IPv4 field must have at least one digit', text.slice(i));
      }
      if (dots === 3) return 'IPv4 address too long';
      dots++;
      value = 0;
      digits = 0;
    } else {
      return at('unexpected character', text.slice(i));
    }
  }
  return dots < 3 ? 'IPv4 address too short' : undefined;
}

/** Of an address with colons, read group by group from the left. */
function groupsFault(text: string): string {
  const zone = text.indexOf('%');
  if (zone === text.length - 1) return 'zone must be a non-empty string';
  let rest = zone === -1 ? text : text.slice(0, zone);
  let groups = 0;
  let ellipsis = rest.startsWith('::');
  if (ellipsis) rest = rest.slice(2);
  while (groups < 8) {
    const [group] = /^[0-9a-fA-F]*/.exec(rest)!;
    if (group.length > 4) return at('each group must have 4 or less digits', rest);
    if (group === '') return at('each colon-separated field must have at least one digit', rest);
    if (rest[group.length] === '.') {
      if (!ellipsis && groups !== 6) {
        return at('embedded IPv4 address must replace the final 2 fields of the address', rest);
      }
      if (groups > 6) return at('too many hex fields to fit an embedded IPv4 at the end of the address', rest);
      const fault = quadFault(rest);
      if (fault !== undefined) return fault;
      groups += 2;
      rest = '';
      break;
    }
    groups++;
    rest = rest.slice(group.length);
    if (rest === '') break;
    if (rest[0] !== ':') return at('unexpected character, want colon', rest);
    if (rest.length === 1) return at('colon must be followed by more characters', rest);
    rest = rest.slice(1);
    if (rest[0] === ':') {
      if (ellipsis) return at('multiple :: in address', rest);
      ellipsis = true;
      rest = rest.slice(1);
      if (rest === '') break;
    }
  }
  if (rest !== '') return at('trailing garbage after address', rest);
  return groups < 8 ? 'address string too short' : 'the :: must expand to at least one field of zeros';
}
