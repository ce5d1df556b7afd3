/** A write as webhooks and expressions see it: the fields of an AdmissionRequest beside the objects. */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { UserInfo } from '../../auth/identity.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { namespaceOf } from './selectors.ts';
import { kindOf, resourceOf } from './served-kinds.ts';

/**
 * `matched` is the resource in whose version the object is shown, `resource` the one that is named. Empty fields are left
 * out, as Go leaves them out.
 */
export function requestView(
  attributes: AdmissionAttributes,
  matched: ResourceInfo,
  resource = matched,
): Record<string, unknown> {
  const { info, subresource, name, operation, dryRun, options } = attributes;
  const namespace = namespaceOf(attributes);
  return {
    kind: kindOf(matched, subresource),
    resource: resourceOf(resource),
    ...(subresource !== '' && { subResource: subresource }),
    requestKind: kindOf(info, subresource),
    requestResource: resourceOf(info),
    ...(subresource !== '' && { requestSubResource: subresource }),
    ...(name !== '' && { name }),
    ...(namespace !== '' && { namespace }),
    operation,
    userInfo: userView(attributes.user),
    dryRun,
    ...(options !== undefined && { options }),
  };
}

const userView = ({ username, uid, groups, extra }: UserInfo): Record<string, unknown> => ({
  username,
  ...(uid !== undefined && uid !== '' && { uid }),
  ...(groups.length > 0 && { groups }),
  ...(extra !== undefined && Object.keys(extra).length > 0 && { extra }),
});
