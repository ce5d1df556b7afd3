/** `authorizer` and `authorizer.requestResource` for one request, over the server's own authoriser. */
import { authorizerValue, type CelAuthorizer, resourceCheckValue } from '../../../api/cel/cel.ts';
import type { Authorizer, UserInfo } from '../../auth/identity.ts';
import { accessSelectors } from '../../auth/review-selectors.ts';
import type { AuthorizerFor } from './expression-environment.ts';
import { namespaceOf } from './selectors.ts';

/** Asks about the request's user, or about the service account that the expression names. */
export const requestAuthorizer =
  (authorize: Authorizer): AuthorizerFor =>
  (attributes) => {
    const decide: CelAuthorizer = ({ verb, path, serviceAccount, ...asked }) => {
      const user = serviceAccount ? accountUser(serviceAccount) : attributes.user;
      if (path !== undefined) return authorize(user, { type: 'path', verb, path });
      const { group = '', resource = '', subresource = '', namespace = '', name = '' } = asked;
      const { fieldSelector, labelSelector } = asked;
      const { problems: _problems, ...selectors } = accessSelectors({
        ...(fieldSelector && { fieldSelector: { rawSelector: fieldSelector } }),
        ...(labelSelector && { labelSelector: { rawSelector: labelSelector } }),
      });
      return authorize(user, {
        type: 'resource',
        verb,
        group,
        version: '*',
        resource,
        subresource,
        namespace,
        name,
        ...selectors,
      });
    };
    const { info, subresource, name } = attributes;
    return {
      authorizer: authorizerValue(decide),
      requestResource: resourceCheckValue(decide, {
        group: info.group,
        resource: info.resource,
        ...(subresource !== '' && { subresource }),
        ...(name !== '' && { name }),
        ...(namespaceOf(attributes) !== '' && { namespace: namespaceOf(attributes) }),
      }),
    };
  };

const accountUser = ({ namespace, name }: { readonly namespace: string; readonly name: string }): UserInfo => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
});
