/**
 * Who may switch the protection of a virtual machine off, where the administrator made that a right of its own. Asked of
 * what every other plug-in left of the write, by any verb, version and subresource; nobody is exempt by name.
 */
import { forbidden } from '@coracle/apimachinery/meta/status';
import type { AdmissionAttributes, AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { Authorizer } from '@coracle/apiserver/auth/identity';
import type { ProtectionSettings } from '@coracle/kubevirt/rules/protection/protection-settings';
import {
  switchesProtectionOff,
  UNPROTECT_VERB,
  unprotectRefusal,
} from '@coracle/kubevirt/rules/protection/unprotect-permission';
import type { RefusalEvidence } from './refusal-evidence.ts';

const NAME = 'UnprotectRights';

/** Makes the plug-in. */
export function unprotectRights(options: {
  readonly settings: () => ProtectionSettings;
  readonly authorize: Authorizer;
  readonly evidence: RefusalEvidence;
}): AdmissionPlugin {
  const { settings, authorize, evidence } = options;
  const ask = async (attributes: AdmissionAttributes): Promise<void> => {
    const { info, namespace, name, user } = attributes;
    const { group, version, resource } = info;
    const right = { type: 'resource', verb: UNPROTECT_VERB, group, version, resource, subresource: '' } as const;
    const { allowed } = await authorize(user, { ...right, namespace, name });
    if (allowed) return;
    const message = unprotectRefusal({ username: user.username, namespace, name });
    evidence.refused(attributes, { policy: NAME, reason: 'UnprotectForbidden', message });
    throw forbidden(info, name, message);
  };
  return {
    name: NAME,
    matches: (operation, { group, resource }) =>
      operation === 'UPDATE' && group === 'kubevirt.io' && resource === 'virtualmachines',
    validate(attributes) {
      const { object, oldObject } = attributes;
      if (!object || !oldObject || !switchesProtectionOff(oldObject, object)) return;
      if (settings().unprotectNeedsPermission) return ask(attributes);
    },
  };
}
