/** Defaults of storage, admission, apiextensions, rbac, networking and the other cluster-level groups. */
import { ensureObject, type MutableObject, member, members, preset } from './preset.ts';

export function setDeviceDefaults(spec: MutableObject | undefined): void {
  for (const request of members(member(spec, 'devices'), 'requests')) {
    const exactly = member(request, 'exactly');
    for (const wanted of exactly === undefined ? members(request, 'firstAvailable') : [exactly]) {
      preset(wanted, { allocationMode: 'ExactCount' });
      if (wanted['allocationMode'] === 'ExactCount' && !wanted['count']) wanted['count'] = 1;
    }
  }
}

export function setWebhookDefaults(configuration: MutableObject, mutating: boolean): void {
  for (const webhook of members(configuration, 'webhooks')) {
    preset(webhook, {
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      namespaceSelector: {},
      objectSelector: {},
      timeoutSeconds: 10,
      ...(mutating && { reinvocationPolicy: 'Never' }),
    });
    const service = member(member(webhook, 'clientConfig'), 'service');
    if (service !== undefined) preset(service, { port: 443 });
    setScopes(webhook, 'rules');
  }
}

function setScopes(holder: MutableObject, list: string): void {
  for (const rule of members(holder, list)) preset(rule, { scope: '*' });
}

function setMatchDefaults(holder: MutableObject | undefined, field: string): void {
  const match = member(holder, field);
  if (match === undefined) return;
  preset(match, { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} });
  for (const list of ['resourceRules', 'excludeResourceRules']) setScopes(match, list);
}

export function setPolicyDefaults(policy: MutableObject): void {
  const spec = ensureObject(policy, 'spec');
  if (spec === undefined) return;
  preset(spec, { failurePolicy: 'Fail' });
  setMatchDefaults(spec, 'matchConstraints');
}

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

/** Of a binding of a policy. */
export const setPolicyBindingDefaults = (binding: MutableObject): void =>
  setMatchDefaults(member(binding, 'spec'), 'matchResources');

export const setClaimOfDevicesDefaults = (claim: MutableObject): void => setDeviceDefaults(member(claim, 'spec'));
export const setDeviceTemplateDefaults = (template: MutableObject): void =>
  setDeviceDefaults(member(member(template, 'spec'), 'spec'));

export const setStorageClassDefaults = (storageClass: MutableObject): void =>
  preset(storageClass, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' });

export function setCsiDriverDefaults(driver: MutableObject): void {
  const spec = ensureObject(driver, 'spec');
  if (spec === undefined) return;
  preset(spec, {
    attachRequired: true,
    podInfoOnMount: false,
    storageCapacity: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    requiresRepublish: false,
    seLinuxMount: false,
    volumeLifecycleModes: ['Persistent'],
  });
}

export function setIngressClassDefaults(ingressClass: MutableObject): void {
  const parameters = member(member(ingressClass, 'spec'), 'parameters');
  if (parameters !== undefined) preset(parameters, { scope: 'Cluster' });
}

export function setNetworkPolicyDefaults(policy: MutableObject): void {
  const spec = ensureObject(policy, 'spec');
  if (spec === undefined) return;
  preset(spec, { podSelector: {} });
  const hasEgress = Array.isArray(spec['egress']) && spec['egress'].length > 0;
  preset(spec, { policyTypes: hasEgress ? ['Ingress', 'Egress'] : ['Ingress'] });
  for (const rule of [...members(spec, 'ingress'), ...members(spec, 'egress')]) {
    for (const port of members(rule, 'ports')) preset(port, { protocol: 'TCP' });
  }
}

export function setSliceDefaults(slice: MutableObject): void {
  for (const port of members(slice, 'ports')) preset(port, { name: '', protocol: 'TCP' });
}

export const setPriorityClassDefaults = (priorityClass: MutableObject): void =>
  preset(priorityClass, { preemptionPolicy: 'PreemptLowerPriority' });

export function setApiServiceDefaults(apiService: MutableObject): void {
  const service = member(member(apiService, 'spec'), 'service');
  if (service !== undefined) preset(service, { port: 443 });
}

export function setFlowSchemaDefaults(flowSchema: MutableObject): void {
  const spec = ensureObject(flowSchema, 'spec');
  if (spec !== undefined) preset(spec, { matchingPrecedence: 1000 });
}

export function setPriorityLevelDefaults(level: MutableObject): void {
  const spec = ensureObject(level, 'spec');
  const limited = member(spec, 'limited');
  if (spec?.['type'] === 'Exempt') {
    const exempt = ensureObject(spec, 'exempt');
    if (exempt !== undefined) preset(exempt, { nominalConcurrencyShares: 0, lendablePercent: 0 });
  }
  if (limited === undefined) return;
  preset(limited, { nominalConcurrencyShares: 30, lendablePercent: 0 });
  const queuing = member(member(limited, 'limitResponse'), 'queuing');
  if (queuing !== undefined) preset(queuing, { queues: 64, handSize: 8, queueLengthLimit: 50 });
}
