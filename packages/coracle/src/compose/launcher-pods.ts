/**
 * Launcher Pods come from KubeVirt's controllers alone. An agent starts the guest of an instance for a Pod that carries
 * the launcher's label and names the instance as its controller, both of which whoever may write Pods could write: with
 * requests of its own, so that quota, limits and scheduling would count something else than the guest gets, or with a
 * node of its choice. For the same reason nobody else resizes one.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { forbidden } from '@coracle/apimachinery/meta/status';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { UserInfo } from '@coracle/apiserver/auth/identity';
import {
  CREATED_BY_LABEL,
  LAUNCHER_LABEL,
  LAUNCHER_VALUE,
  MIGRATION_JOB_LABEL,
} from '@coracle/kubevirt/rules/launcher/launcher-labels';
import { instanceReference } from '@coracle/kubevirt/rules/launcher/launcher-owner';

const ADMINISTRATORS = 'system:masters';

/** Makes the plug-in; `isTrusted`: one of KubeVirt's components. Administrators (system:masters) are let through. */
export const launcherPods = (isTrusted: (user: UserInfo) => boolean): AdmissionPlugin => ({
  name: 'LauncherPods',
  matches: (operation, info, subresource) =>
    (operation === 'CREATE' || operation === 'UPDATE') &&
    info.group === '' &&
    info.resource === 'pods' &&
    (subresource === '' || subresource === 'resize'),
  validate({ user, info, name, subresource, object, oldObject }) {
    const now = claimOf(object as ReadonlyPod | undefined);
    // Losing what made it one, or keeping it, is no claim.
    if (!now) return;
    if (subresource !== 'resize' && deepEqual(now, claimOf(oldObject as ReadonlyPod | undefined))) return;
    if (isTrusted(user) || user.groups.includes(ADMINISTRATORS)) return;
    const [, instance] = now;
    throw forbidden(
      info,
      name || object?.metadata.generateName || '',
      `only KubeVirt's controllers ${subresource === 'resize' ? 'resize' : 'make'} launcher pods, of virtual machine instance ${JSON.stringify(instance)} as of others`,
    );
  },
});

/** What a Pod claims to be the launcher of: uid and name of the instance, and the migration; undefined when nothing. */
function claimOf(pod: ReadonlyPod | undefined): readonly (string | undefined)[] | undefined {
  const labels = pod?.metadata.labels;
  const owner = instanceReference(pod);
  if (!owner || labels?.[LAUNCHER_LABEL] !== LAUNCHER_VALUE) return undefined;
  return [owner.uid, owner.name, labels[CREATED_BY_LABEL], labels[MIGRATION_JOB_LABEL]];
}
