/** Asking the authorizer about a request, and saying no in upstream's words. */
import { ApiError, forbidden } from '@coracle/apimachinery/meta/status';
import { parseFieldSelector } from '@coracle/apimachinery/selector/field-selector';
import { parseLabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { AuthorizationAttributes, UserInfo } from '../auth/identity.ts';
import type { RequestInfo } from './request-info.ts';

/** What the authorizer is asked for this request; `query` is the raw one, for the selectors in it. */
export function authorizationAttributes(info: RequestInfo, query = ''): AuthorizationAttributes {
  if (!info.isResource) return { type: 'path', verb: info.verb, path: info.path };
  const { verb, group, version, resource, subresource, namespace, name } = info;
  const attributes = { type: 'resource', verb, group, version, resource, subresource, namespace, name } as const;
  if (!query.includes('elector') || !SELECTING.has(verb)) return attributes;
  return { ...attributes, ...selectorsOf(query) };
}

const SELECTING = new Set(['list', 'watch', 'deletecollection']);

/** A selector that does not parse narrows nothing down here; the verb refuses it later. */
function selectorsOf(
  query: string,
): Pick<Extract<AuthorizationAttributes, { type: 'resource' }>, 'fieldSelector' | 'labelSelector'> {
  const parameters = new URLSearchParams(query);
  const parsed = <T>(name: string, parse: (text: string) => T): Record<string, T> => {
    const text = parameters.get(name);
    try {
      return text ? { [name]: parse(text) } : {};
    } catch {
      return {};
    }
  };
  return { ...parsed('fieldSelector', parseFieldSelector), ...parsed('labelSelector', parseLabelSelector) };
}

/** 403 with the message clients print (responsewriters.Forbidden). */
export function forbiddenBy(user: UserInfo, info: RequestInfo, reason: string): ApiError {
  const why = reason === '' ? refusal(user, info) : `${refusal(user, info)}: ${reason}`;
  if (info.isResource) return forbidden(info, info.name, why);
  return new ApiError({ code: 403, reason: 'Forbidden', message: `forbidden: ${why}`, details: {} });
}

function refusal(user: UserInfo, info: RequestInfo): string {
  const quoted = (text: string): string => escapeHtml(JSON.stringify(text));
  const who = `User ${quoted(user.username)}`;
  if (!info.isResource) return `${who} cannot ${info.verb} path ${quoted(info.path)}`;
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`;
  const scope = info.namespace === '' ? 'at the cluster scope' : `in the namespace ${quoted(info.namespace)}`;
  return `${who} cannot ${info.verb} resource ${quoted(resource)} in API group ${quoted(info.group)} ${scope}`;
}

/** Names come from the request: a browser that shows the message must not run them. */
export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
