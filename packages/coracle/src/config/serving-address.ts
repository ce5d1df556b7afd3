/** Where the API server listens, and the names by which others reach it. */
import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';

export const LOOPBACK = '127.0.0.1';

export interface ServingAddress {
  /** As the socket takes it. */
  readonly listen: string;
  /** What the kubeconfig, the `kubernetes` Service and the nodes of this process name. */
  readonly advertise: string;
  /** IP addresses the certificate has to name beside the loopback one. */
  readonly ipAddresses: readonly string[];
  readonly dnsNames: readonly string[];
  /** Whether other hosts reach it. */
  readonly isOpen: boolean;
}

/**
 * What `--bind-address` means. For all interfaces (`0.0.0.0`, `::`) the certificate names every address of the host, and
 * the first one of that family is advertised. Throws RangeError when the text is no IP address.
 */
export function servingAddress(
  text: string,
  host: { readonly addresses: readonly string[]; readonly name: string } = {
    addresses: hostAddresses(),
    name: hostname().toLowerCase(),
  },
): ServingAddress {
  const family = isIP(text);
  // A zone is of this host only, so that nobody else could use the address.
  if (family === 0 || text.includes('%')) throw new RangeError(`not an IP address: ${JSON.stringify(text)}`);
  if (isLoopback(text)) return { listen: text, advertise: text, ipAddresses: [text], dnsNames: [], isOpen: false };
  const names = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(host.name) && host.name !== 'localhost' ? [host.name] : [];
  if (text !== '0.0.0.0' && !/^[0:]+$/.test(text))
    return { listen: text, advertise: text, ipAddresses: [text], dnsNames: names, isOpen: true };
  // A socket on `::` takes both families.
  const reached = host.addresses.filter((address) => family === 6 || isIP(address) === 4);
  const advertise = reached.find((address) => isIP(address) === family) ?? reached[0] ?? LOOPBACK;
  return { listen: text, advertise, ipAddresses: reached, dnsNames: names, isOpen: true };
}

/** Addresses of this host that others can use, in the system's order: no loopback, no link-local ones. */
export const hostAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !/^(fe[89ab]|169\.254\.)/i.test(address))
    .map(({ address }) => address);

/** Whether only this host reaches it. Host names count as loopback when they are `localhost`. */
export const isLoopback = (host: string): boolean =>
  /^127(\.\d+){3}$/.test(host) || /^(0*:)+0*1$/.test(host) || host === 'localhost';

/** As it stands in a URL. */
export const inUrl = (address: string): string => (isIP(address) === 6 ? `[${address}]` : address);
