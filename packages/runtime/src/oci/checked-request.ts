/**
 * One HTTP request to where its name leads now: the name is resolved once, the addresses are checked, and the connection
 * goes to a checked address. A name that means another address the next time (DNS rebinding) gains nothing.
 */
import { lookup } from 'node:dns/promises';
import type { IncomingMessage } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import { rootCertificates } from 'node:tls';
import { type AddressRange, addressRange } from './address-range.ts';

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export interface CheckedRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly resolve: Resolve;
  /** Ranges that may be connected to. */
  readonly allowed: ReadonlySet<AddressRange>;
  /** PEM of an authority that is trusted beside the usual ones. */
  readonly ca?: string;
}

export interface CheckedResponse {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
  /** Leaves the body unread. */
  cancel(): void;
}

/** The target has no address that may be connected to. */
export class ForbiddenAddress extends Error {}

/** Addresses as the host's resolver gives them. */
export const resolveName: Resolve = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

/** The addresses that a URL leads to: its own, or those of its name. */
export async function addressesOf(url: URL, resolve: Resolve): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? resolve(host) : [host];
}

/** Sends a GET. Rejects with ForbiddenAddress, a failure of the network, or the signal's reason. No redirect is followed. */
export async function checkedRequest(url: URL, options: CheckedRequest): Promise<CheckedResponse> {
  const addresses = await addressesOf(url, options.resolve);
  options.signal.throwIfAborted();
  const usable = addresses.filter((address) => options.allowed.has(addressRange(address)));
  if (usable.length === 0) {
    const found = [...new Set(addresses.map(addressRange))].join(', ') || 'no';
    throw new ForbiddenAddress(`${url.host} has only ${found} addresses, which it may not send anybody to`);
  }
  const pinned = usable.map((address) => ({ address, family: isIP(address) }));
  const lookUp: LookupFunction = (_host, { all }, done) => {
    const [first] = pinned;
    if (all) done(null, pinned);
    else done(null, first!.address, first!.family);
  };
  // Not imported: an import of node:http reads all that it exports, and with that loads the whole of fetch, 15 MiB.
  const { request: send } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http');
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = send(url, {
      method: 'GET',
      headers: { ...options.headers },
      lookup: lookUp,
      ...(options.ca !== undefined && { ca: [...rootCertificates, options.ca] }),
      signal: options.signal,
      agent: false,
    });
    request.once('response', resolve);
    request.once('error', (error) => reject(options.signal.aborted ? options.signal.reason : error));
    request.end();
  });
  // Whoever leaves the body gets no error of the connection that ends.
  message.on('error', () => {});
  return {
    status: message.statusCode ?? 0,
    header: (name) => {
      const value = message.headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    body: message,
    cancel: () => void message.destroy(),
  };
}
