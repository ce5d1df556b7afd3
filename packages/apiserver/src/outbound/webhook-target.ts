import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { WebhookClientConfig } from '@coracle/apimachinery/types/types';
import type { OutboundTarget } from './outbound.ts';

/** A webhook's `clientConfig`, ready to be called. */
export interface WebhookTarget {
  readonly target: OutboundTarget;
  /** As messages show it: the URL, or that of the Service. */
  readonly url: string;
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
}

/** Reads a `clientConfig` that has been validated. */
export function webhookTarget({ url = '', service, caBundle }: DeepReadonly<WebhookClientConfig>): WebhookTarget {
  const trust = caBundle ? { caBundle: pemOf(caBundle) } : {};
  if (!service) {
    const { pathname = '/', search = '' } = URL.parse(url) ?? {};
    return { target: { address: { url }, ...trust }, url, path: pathname, query: search.slice(1) };
  }
  const { namespace, name, port = 443 } = service;
  const path = service.path ?? '';
  const whole = `https://${name}.${namespace}.svc:${port}${path === '' || path.startsWith('/') ? path : `/${path}`}`;
  const { pathname = '/', search = '' } = URL.parse(whole) ?? {};
  const target = { address: { service: { namespace, name, port } }, ...trust };
  return { target, url: whole, path: pathname, query: search.slice(1) };
}

/** A bundle that is no base64 trusts nobody. */
function pemOf(caBundle: string): string {
  try {
    return new TextDecoder().decode(decodeBase64(caBundle));
  } catch {
    return '';
  }
}
