/**
 * Calls from the server to others: admission and conversion webhooks, aggregated API servers. How a connection is made
 * is the host's matter (`coracle/compose`); the server only says whom it means and what it trusts.
 */
import type { ApiHandler } from '@coracle/runtime/http/seam';

/** Whom to call: an https URL, or a Service of this API (a WebhookClientConfig or APIService has one of the two). */
export type OutboundAddress =
  | { readonly url: string }
  | { readonly service: { readonly namespace: string; readonly name: string; readonly port: number } };

/** Whom to call and what proves that it is them. Paths belong to the request, not to the target. */
export interface OutboundTarget {
  readonly address: OutboundAddress;
  /** PEM certificates that the far end's certificate must chain to; absent = the host's own trust store. */
  readonly caBundle?: string;
  /** Accept any certificate (`insecureSkipTLSVerify` of an APIService). */
  readonly insecureSkipTlsVerify?: boolean;
  /** Show the front-proxy client certificate, so that the far end believes the X-Remote-* headers. */
  readonly frontProxy?: boolean;
}

/**
 * Gives a handler that reaches the target. Making it costs nothing and connects nowhere; its calls reject with an Error
 * whose message says what failed (no such service, no endpoints, refused, not trusted). Connections are kept and shared.
 */
export type ConnectOutbound = (target: OutboundTarget) => ApiHandler;

/** For hosts that call nobody, a page in a browser for one. */
export const noOutbound: ConnectOutbound = () => () => Promise.reject(new Error('this host makes no outbound calls'));
