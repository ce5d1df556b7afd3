/**
 * Requests to a registry and to where it redirects. Redirects are followed by hand so that neither the credential nor the
 * token reaches another host than the one it is for, and only to checked addresses: a registry must not send its clients
 * to services of their own network.
 */
import type { Clock } from '../clock/clock.ts';
import { type AddressRange, addressRange } from './address-range.ts';
import {
  addressesOf,
  type CheckedResponse,
  checkedRequest,
  ForbiddenAddress,
  type Resolve,
  resolveName,
} from './checked-request.ts';
import { RegistryError } from './registry-error.ts';

export interface RegistryExchangeOptions {
  readonly clock: Clock;
  /** PEM of the authority of the registry. */
  readonly ca?: string;
  /** Default: the host's resolver. */
  readonly resolve?: Resolve;
}

/** Asks `url`, whose host alone is shown `identity`. Throws RegistryError, or the signal's reason. */
export type RegistryExchange = (
  url: URL,
  headers: Record<string, string>,
  how: { readonly identity: string | undefined; readonly signal: AbortSignal },
) => Promise<CheckedResponse>;

const MAX_REDIRECTS = 5;
const REQUEST_TIMEOUT_MS = 30_000;

/** Makes the exchange with the registry at `origin`; `where` names the repository in what it says of failures. */
export function createRegistryExchange(
  origin: string,
  where: string,
  options: RegistryExchangeOptions,
): RegistryExchange {
  const resolve = options.resolve ?? resolveName;
  /** Where the registry itself is: found with the first connection, and counted for all that follow. */
  let ownRanges: ReadonlySet<AddressRange> | undefined;
  const rangesFor = async (target: URL): Promise<ReadonlySet<AddressRange>> => {
    ownRanges ??= new Set((await addressesOf(new URL(origin), resolve)).map(addressRange));
    if (target.origin === origin) return ownRanges;
    // Beside the public Internet only where the registry is too; without TLS nowhere but on this host.
    if (target.protocol === 'http:') return new Set(ownRanges.has('loopback') ? (['loopback'] as const) : []);
    return new Set([...ownRanges, 'public' as const]);
  };

  /** The addresses of the way there have been checked; `identity` goes to the host of `url` and to no other. */
  return async (url, headers, { identity, signal }) => {
    let target = url;
    let shown = identity;
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const limit = new AbortController();
      const cancel = options.clock.schedule(REQUEST_TIMEOUT_MS, () =>
        limit.abort(new Error(`no answer within ${REQUEST_TIMEOUT_MS} ms`)),
      );
      let response: CheckedResponse;
      // A body is read for as long as it takes: the limit is for its head.
      const life = AbortSignal.any([signal, limit.signal]);
      try {
        response = await checkedRequest(target, {
          resolve,
          allowed: await rangesFor(target),
          signal: life,
          ...(options.ca !== undefined && { ca: options.ca }),
          headers: {
            'user-agent': 'coracle',
            // Ranges and digests are about the bytes as stored.
            'accept-encoding': 'identity',
            ...headers,
            ...(shown !== undefined && { authorization: shown }),
          },
        });
      } catch (error) {
        signal.throwIfAborted();
        const { message } = error as Error;
        if (error instanceof ForbiddenAddress) throw new RegistryError('denied', `${where}: ${message}`);
        throw new RegistryError('failed', `${where}: cannot reach ${target.host}: ${message}`, { cause: error });
      } finally {
        cancel();
      }
      const location = response.header('location');
      if (![301, 302, 303, 307, 308].includes(response.status) || location === undefined) return response;
      response.cancel();
      const next = URL.parse(location, target);
      if (!next || (next.protocol !== 'https:' && !(next.protocol === 'http:' && target.protocol === 'http:')))
        throw new RegistryError(
          'failed',
          `${where}: ${target.host} redirects to ${next?.protocol ?? 'no address'} which is refused`,
        );
      // Also on the way back: who has sent us elsewhere may have changed what is asked.
      if (next.origin !== target.origin) shown = undefined;
      target = next;
    }
    throw new RegistryError('failed', `${where}: more than ${MAX_REDIRECTS} redirects`);
  };
}
