/** What `proxy` is asked of: `name`, `name:port` or `scheme:name:port`. */
import { ApiError } from '@coracle/apimachinery/meta/status';

export interface ProxyId {
  readonly scheme: '' | 'http' | 'https';
  readonly name: string;
  /** A number or a name, '' when none was given. */
  readonly port: string;
}

/** Reads an id; undefined when it is none (apimachinery's SplitSchemeNamePort). */
export function parseProxyId(id: string): ProxyId | undefined {
  const parts = id.split(':');
  if (parts.length > 3) return undefined;
  const [scheme = '', name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts];
  if (name === '' || (scheme !== '' && scheme !== 'http' && scheme !== 'https')) return undefined;
  return { scheme, name, port };
}

/** 503: there is something of that name, and nothing behind it answers. */
export const unavailable = (message: string): ApiError =>
  new ApiError({ code: 503, reason: 'ServiceUnavailable', message });
