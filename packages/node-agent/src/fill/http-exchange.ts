/**
 * A GET of an image, redirects followed by hand: credentials and headers reach the host that they are for and no other,
 * and a server sends nobody to networks that it is not itself in.
 */
import { type AddressRange, addressRange } from '@coracle/runtime/oci/address-range';
import {
  addressesOf,
  type CheckedResponse,
  checkedRequest,
  ForbiddenAddress,
  type Resolve,
} from '@coracle/runtime/oci/checked-request';
import { FillError } from './fill-error.ts';

export interface HttpSource {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly credentials?: { readonly username: string; readonly password: string };
  /** PEM of authorities that are trusted beside the usual ones. */
  readonly ca?: string;
}

export interface ExchangeOptions {
  readonly resolve: Resolve;
  readonly signal: AbortSignal;
}

const MAX_REDIRECTS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];
/** Networks in which no image lies: the services that clouds run for their hosts are there. */
const CLOSED: readonly AddressRange[] = ['link-local', 'reserved'];

/** True for an address or name that means the host itself, said outright. */
export const isLoopbackName = (host: string): boolean =>
  host === 'localhost' || addressRange(host.replace(/^\[|\]$/g, '')) === 'loopback';

/** Asks for the image with `headers` besides those of the source. Throws FillError. */
export async function getImage(
  source: HttpSource,
  headers: Readonly<Record<string, string>>,
  { resolve, signal }: ExchangeOptions,
): Promise<CheckedResponse> {
  const first = URL.parse(source.url);
  if (!first || (first.protocol !== 'http:' && first.protocol !== 'https:'))
    throw new FillError('Source', `${source.url} is not a URL of http or https`);
  const origin = first.origin;
  const own = new Set((await resolved(first, resolve)).map(addressRange).filter((range) => !CLOSED.includes(range)));
  // The host's own services are meant only where they are named.
  if (!isLoopbackName(first.hostname)) own.delete('loopback');
  let target = first;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const isOwn = target.origin === origin;
    const response = await send(target, {
      resolve,
      signal,
      allowed: isOwn ? own : new Set([...own, 'public' as const]),
      ...(source.ca !== undefined && { ca: source.ca }),
      headers: {
        'user-agent': 'coracle',
        // Ranges and checksums are about the bytes as stored.
        'accept-encoding': 'identity',
        ...headers,
        ...(isOwn && { ...source.headers, ...authorization(source) }),
      },
    });
    const location = response.header('location');
    if (!REDIRECTS.includes(response.status) || location === undefined) return response;
    response.cancel();
    const next = URL.parse(location, target);
    if (!next || (next.protocol !== 'https:' && !(next.protocol === 'http:' && target.protocol === 'http:')))
      throw new FillError('Source', `${target.host} redirects to ${next?.protocol ?? 'no address'}, which is refused`);
    target = next;
  }
  throw new FillError('Source', `${first.host} redirects more than ${MAX_REDIRECTS} times`);
}

const authorization = ({ credentials }: HttpSource): Record<string, string> =>
  credentials
    ? { authorization: `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}` }
    : {};

async function resolved(url: URL, resolve: Resolve): Promise<readonly string[]> {
  try {
    return await addressesOf(url, resolve);
  } catch (error) {
    throw new FillError('Source', `cannot find ${url.hostname}: ${textOf(error)}`, { cause: error });
  }
}

async function send(target: URL, options: Parameters<typeof checkedRequest>[1]): Promise<CheckedResponse> {
  try {
    return await checkedRequest(target, options);
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof ForbiddenAddress)
      throw new FillError('Source', `${target.host} has an address that images are not fetched from`);
    throw new FillError('Source', `cannot reach ${target.host}: ${textOf(error)}`, { cause: error });
  }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
