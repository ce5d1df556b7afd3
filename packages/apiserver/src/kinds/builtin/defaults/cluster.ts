/** Defaults of storage, rbac, networking and the other cluster-level groups that are more than values. */
import { type MutableObject, member, members, preset } from './preset.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';

export function setBindingDefaults(binding: MutableObject): void {
  const roleRef = member(binding, 'roleRef');
  if (roleRef !== undefined) {
    if (roleRef['apiGroup'] === '') delete roleRef['apiGroup'];
    preset(roleRef, { apiGroup: RBAC_GROUP });
  }
  for (const subject of members(binding, 'subjects')) {
    if (subject['kind'] === 'User' || subject['kind'] === 'Group') preset(subject, { apiGroup: RBAC_GROUP });
  }
}

function setDeviceDefaults(spec: MutableObject | undefined): void {
  for (const request of members(member(spec, 'devices'), 'requests')) {
    const exactly = member(request, 'exactly');
    for (const wanted of exactly === undefined ? members(request, 'firstAvailable') : [exactly]) {
      preset(wanted, { allocationMode: 'ExactCount' });
      if (wanted['allocationMode'] === 'ExactCount' && !wanted['count']) wanted['count'] = 1;
    }
  }
}

export const setClaimOfDevicesDefaults = (claim: MutableObject): void => setDeviceDefaults(member(claim, 'spec'));
export const setDeviceTemplateDefaults = (template: MutableObject): void =>
  setDeviceDefaults(member(member(template, 'spec'), 'spec'));

export function setNetworkPolicyDefaults(policy: MutableObject): void {
  const spec = member(policy, 'spec');
  const hasEgress = Array.isArray(spec?.['egress']) && spec['egress'].length > 0;
  if (spec !== undefined) preset(spec, { policyTypes: hasEgress ? ['Ingress', 'Egress'] : ['Ingress'] });
}
