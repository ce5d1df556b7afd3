/** Asking the authorizer about a request, and saying no in upstream's words. */
import { ApiError, forbidden } from '@coracle/apimachinery/meta/status';
import { type FieldRequirement, parseFieldSelector } from '@coracle/apimachinery/selector/field-selector';
import { type LabelSelector, parseLabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { AuthorizationAttributes, UserInfo } from '../auth/identity.ts';
import type { RequestInfo } from './request-info.ts';

/** What the authorizer is asked for this request; `query` is the raw one, for the selectors in it. */
export function authorizationAttributes(info: RequestInfo, query = ''): AuthorizationAttributes {
  if (!info.isResource) return { type: 'path', verb: info.verb, path: info.path };
  const attributes = {
    type: 'resource',
    verb: info.verb,
    group: info.group,
    version: info.version,
    resource: info.resource,
    subresource: info.subresource,
    namespace: info.namespace,
    name: info.name,
  } as const;
  if (!query.includes('elector') || !SELECTING.has(info.verb)) return attributes;
  return { ...attributes, ...selectorsOf(query) };
}

const SELECTING = new Set(['list', 'watch', 'deletecollection']);

/** A selector that does not parse narrows nothing down here; the verb refuses it later. */
function selectorsOf(query: string): { fieldSelector?: readonly FieldRequirement[]; labelSelector?: LabelSelector } {
  const parameters = new URLSearchParams(query);
  return {
    ...parsed('fieldSelector', parameters, parseFieldSelector),
    ...parsed('labelSelector', parameters, parseLabelSelector),
  };
}

function parsed<T>(name: string, parameters: URLSearchParams, parse: (text: string) => T): Record<string, T> {
  const text = parameters.get(name);
  if (!text) return {};
  try {
    return { [name]: parse(text) };
  } catch {
    return {};
  }
}

/** 403 with the message clients print (responsewriters.Forbidden). */
export function forbiddenBy(user: UserInfo, info: RequestInfo, reason: string): ApiError {
  const why = reason === '' ? refusal(user, info) : `${refusal(user, info)}: ${reason}`;
  if (info.isResource) return forbidden(info, info.name, why);
  return new ApiError({ code: 403, reason: 'Forbidden', message: `forbidden: ${why}`, details: {} });
}

function refusal(user: UserInfo, info: RequestInfo): string {
  const who = escapeHtml(`User ${JSON.stringify(user.username)}`);
  if (!info.isResource) return `${who} cannot ${info.verb} path ${escapeHtml(JSON.stringify(info.path))}`;
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`;
  const scope =
    info.namespace === '' ? 'at the cluster scope' : `in the namespace ${escapeHtml(JSON.stringify(info.namespace))}`;
  return `${who} cannot ${info.verb} resource ${escapeHtml(JSON.stringify(resource))} in API group ${escapeHtml(JSON.stringify(info.group))} ${scope}`;
}

/** Names come from the request: a browser that shows the message must not run them. */
export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
