/**
 * Where a guest is: on its host a loopback address, on the network of Pods one that other guests can reach (a guest takes
 * 127.0.0.0/8 for itself). Both are the same place of ranges of one size, so that one lease gives out both. The range of
 * Pods, 100.64.0.0/10, is that of RFC 6598, which networks behind hosts use least.
 */

/** The Pod address that belongs to an address of 127.64.0.0/10. */
export const podAddressOf = (hostAddress: string): string => hostAddress.replace(/^127\./, '100.');

/** The loopback address of the host that belongs to a Pod address. */
export const hostAddressOf = (podAddress: string): string => podAddress.replace(/^100\./, '127.');

/** True for an address of the network of Pods. */
export function isPodAddress(address: string): boolean {
  const [first, second] = address.split('.').map(Number);
  return first === 100 && second !== undefined && second >= 64 && second <= 127;
}
