/**
 * The names that this server is called by. A page may make its own name mean this server's address (DNS rebinding), and
 * would be of the same origin then: a request for a name that is not this server's is none of its business.
 */
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ApiRequest } from '@coracle/runtime/http/seam';

/** Spellings remembered as this server's: clients use a few. */
const KNOWN = 256;

/** Throws ApiError 421 for a request that names another host. */
export type CheckHost = (request: Pick<ApiRequest, 'headers'>) => void;

/**
 * `names`: DNS names of the serving certificate. They and `localhost` (with all below it) are this server's, whatever the
 * port and the case, and so is every IP address, which nobody can give another meaning. Requests that name no host come from
 * this process, or from HTTP/1.0.
 */
export function createHostCheck(names: readonly string[]): CheckHost {
  const own = new Set(names.map((name) => name.toLowerCase()));
  const known = new Set<string>();
  return ({ headers }) => {
    for (const authority of [headers['host'], headers[':authority']]) {
      if (authority === undefined || known.has(authority)) continue;
      if (!isOwn(authority, own)) throw misdirected(authority);
      if (known.size < KNOWN) known.add(authority);
    }
  };
}

const AUTHORITY = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?$/;
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;

function isOwn(authority: string, own: ReadonlySet<string>): boolean {
  if (!AUTHORITY.test(authority)) return false;
  if (authority.startsWith('[')) return true;
  const name = authority.replace(/:\d+$/, '').replace(/\.$/, '').toLowerCase();
  return IPV4.test(name) || name === 'localhost' || name.endsWith('.localhost') || own.has(name);
}

function misdirected(authority: string): ApiError {
  const host = JSON.stringify(authority.slice(0, 200));
  return new ApiError({
    code: 421,
    reason: 'BadRequest',
    message: `this server is not ${host}: call it by its address, by localhost, or by a name of its certificate`,
    details: {},
  });
}
