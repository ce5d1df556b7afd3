/** Asking the authorizer about a request, and saying no in upstream's words. */
import { ApiError, forbidden } from '../../api/meta/status.ts';
import type { AuthorizationAttributes, UserInfo } from '../auth/identity.ts';
import type { RequestInfo } from './request-info.ts';

/** What the authorizer is asked for this request. */
export function authorizationAttributes(info: RequestInfo): AuthorizationAttributes {
  if (!info.isResource) return { type: 'path', verb: info.verb, path: info.path };
  return {
    type: 'resource',
    verb: info.verb,
    group: info.group,
    version: info.version,
    resource: info.resource,
    subresource: info.subresource,
    namespace: info.namespace,
    name: info.name,
  };
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
const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
