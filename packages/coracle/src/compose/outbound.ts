/**
 * The host's side of outbound calls: HTTPS to a URL or to the endpoints of a Service. Connections are kept and shared by
 * all targets that trust and show the same.
 */

import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import type { ConnectOutbound, OutboundTarget } from '@coracle/apiserver/outbound/outbound';
import { type ServiceAddress, serviceAddresses, serviceHost } from '@coracle/apiserver/outbound/service-address';
import { createHttpsTransport, type HttpsTransport } from '@coracle/runtime/http/https-transport';
import type { KeyPairPem } from '../config/pki.ts';
import { inUrl } from '../config/serving-address.ts';

/** Far ends with kept connections; the one that was called longest ago goes first. */
const MAX_TRANSPORTS = 128;

export type Outbound = ReturnType<typeof createOutbound>;

/** Makes the host's outbound side. Services are found in `store`; `frontProxy` (PEM) is shown to targets that ask for it. */
export function createOutbound(options: {
  readonly store: Pick<ObjectStore, 'get' | 'list'>;
  readonly frontProxy?: KeyPairPem;
}) {
  const { store, frontProxy } = options;
  const transports = new Map<string, HttpsTransport>();
  let turn = 0;

  const transportTo = (server: string, target: OutboundTarget, serverName?: string): HttpsTransport => {
    const key = [server, serverName, target.insecureSkipTlsVerify, target.frontProxy, target.caBundle].join('\n');
    const transport =
      transports.get(key) ??
      createHttpsTransport({
        server,
        http1: true,
        ...(target.caBundle !== undefined && { ca: target.caBundle }),
        ...(serverName !== undefined && { serverName }),
        ...(target.insecureSkipTlsVerify && { insecureSkipTlsVerify: true }),
        ...(target.frontProxy && frontProxy),
      });
    transports.delete(key);
    transports.set(key, transport);
    // Not closed: calls may be under way on it. Its idle connections end by themselves.
    if (transports.size > MAX_TRANSPORTS) transports.delete(transports.keys().next().value!);
    return transport;
  };

  return {
    connect: ((target) => async (request) => {
      const { address } = target;
      try {
        if ('url' in address) return await transportTo(new URL(address.url).origin, target)(request);
        const addresses = serviceAddresses(store, address.service);
        // Each in turn: one that is down fails every nth call only.
        const to = addresses[turn++ % addresses.length] as ServiceAddress;
        return await transportTo(urlOf(to), target, serviceHost(address.service))(request);
      } catch (error) {
        if (request.signal.aborted) throw request.signal.reason;
        throw new Error(reasonOf(error), { cause: error });
      }
    }) satisfies ConnectOutbound,
    /** Ends all connections. */
    close() {
      for (const transport of transports.values()) transport.close();
      transports.clear();
    },
  };
}

const urlOf = ({ host, port }: ServiceAddress): string => `https://${inUrl(host)}:${port}`;

const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
]);

/** What went wrong with a call, in the words Go's net package has for it where there are any. */
export function reasonOf(error: unknown): string {
  let inner = error as Error & { code?: string; address?: string; port?: number };
  while (inner.cause instanceof Error) inner = inner.cause as typeof inner;
  const { code = '', address, port } = inner;
  if (code === 'ECONNREFUSED') return `dial tcp ${address}:${port}: connect: connection refused`;
  if (code === 'ENOTFOUND') return `dial tcp: lookup ${(inner as { hostname?: string }).hostname ?? ''}: no such host`;
  if (code === 'ECONNRESET' || inner.message === 'socket hang up') return 'EOF';
  if (UNTRUSTED.has(code)) {
    return 'tls: failed to verify certificate: x509: certificate signed by unknown authority';
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return 'tls: failed to verify certificate: x509: certificate has expired or is not yet valid';
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `tls: failed to verify certificate: x509: ${inner.message}`;
  return inner.message;
}
