/** Defaults of storage, admission, apiextensions, rbac, networking and the other cluster-level groups. */
import { setCrdDefaults } from '../../custom/crd-strategy.ts';
import { ensureObject, type GroupDefaults, type MutableObject, member, members, preset } from './preset.ts';

function setDeviceDefaults(spec: MutableObject | undefined): void {
  for (const request of members(member(spec, 'devices'), 'requests')) {
    const exactly = member(request, 'exactly');
    for (const wanted of exactly === undefined ? members(request, 'firstAvailable') : [exactly]) {
      preset(wanted, { allocationMode: 'ExactCount' });
      if (wanted['allocationMode'] === 'ExactCount' && !wanted['count']) wanted['count'] = 1;
    }
  }
}

export const DEVICE_DEFAULTS: GroupDefaults = {
  resourceclaims: (object) => setDeviceDefaults(member(object, 'spec')),
  resourceclaimtemplates: (object) => setDeviceDefaults(member(member(object, 'spec'), 'spec')),
};

export const STORAGE_DEFAULTS: GroupDefaults = {
  storageclasses: (object) => preset(object, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' }),
  csidrivers: (object) => {
    const spec = ensureObject(object, 'spec');
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
  },
};

function setWebhookDefaults(configuration: MutableObject, mutating: boolean): void {
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

function setPolicyDefaults(policy: MutableObject): void {
  const spec = ensureObject(policy, 'spec');
  if (spec === undefined) return;
  preset(spec, { failurePolicy: 'Fail' });
  setMatchDefaults(spec, 'matchConstraints');
}

export const ADMISSION_DEFAULTS: GroupDefaults = {
  validatingwebhookconfigurations: (object) => setWebhookDefaults(object, false),
  mutatingwebhookconfigurations: (object) => setWebhookDefaults(object, true),
  validatingadmissionpolicies: setPolicyDefaults,
  mutatingadmissionpolicies: setPolicyDefaults,
  validatingadmissionpolicybindings: (object) => setMatchDefaults(member(object, 'spec'), 'matchResources'),
  mutatingadmissionpolicybindings: (object) => setMatchDefaults(member(object, 'spec'), 'matchResources'),
};

export const EXTENSIONS_DEFAULTS: GroupDefaults = {
  customresourcedefinitions: setCrdDefaults,
};

const RBAC_GROUP = 'rbac.authorization.k8s.io';

function setBindingDefaults(binding: MutableObject): void {
  const roleRef = member(binding, 'roleRef');
  if (roleRef !== undefined) {
    if (roleRef['apiGroup'] === '') delete roleRef['apiGroup'];
    preset(roleRef, { apiGroup: RBAC_GROUP });
  }
  for (const subject of members(binding, 'subjects')) {
    if (subject['kind'] === 'User' || subject['kind'] === 'Group') preset(subject, { apiGroup: RBAC_GROUP });
  }
}

export const RBAC_DEFAULTS: GroupDefaults = {
  rolebindings: setBindingDefaults,
  clusterrolebindings: setBindingDefaults,
};

export const NETWORKING_DEFAULTS: GroupDefaults = {
  ingressclasses: (object) => {
    const parameters = member(member(object, 'spec'), 'parameters');
    if (parameters !== undefined) preset(parameters, { scope: 'Cluster' });
  },
  networkpolicies(object) {
    const spec = ensureObject(object, 'spec');
    if (spec === undefined) return;
    preset(spec, { podSelector: {} });
    const hasEgress = Array.isArray(spec['egress']) && spec['egress'].length > 0;
    preset(spec, { policyTypes: hasEgress ? ['Ingress', 'Egress'] : ['Ingress'] });
    for (const rule of [...members(spec, 'ingress'), ...members(spec, 'egress')]) {
      for (const port of members(rule, 'ports')) preset(port, { protocol: 'TCP' });
    }
  },
};

export const DISCOVERY_DEFAULTS: GroupDefaults = {
  endpointslices(object) {
    for (const port of members(object, 'ports')) preset(port, { name: '', protocol: 'TCP' });
  },
};

export const SCHEDULING_DEFAULTS: GroupDefaults = {
  priorityclasses: (object) => preset(object, { preemptionPolicy: 'PreemptLowerPriority' }),
};

export const REGISTRATION_DEFAULTS: GroupDefaults = {
  apiservices: (object) => {
    const service = member(member(object, 'spec'), 'service');
    if (service !== undefined) preset(service, { port: 443 });
  },
};

export const FLOWCONTROL_DEFAULTS: GroupDefaults = {
  flowschemas: (object) => {
    const spec = ensureObject(object, 'spec');
    if (spec !== undefined) preset(spec, { matchingPrecedence: 1000 });
  },
  prioritylevelconfigurations: (object) => {
    const spec = ensureObject(object, 'spec');
    const limited = member(spec, 'limited');
    if (spec?.['type'] === 'Exempt') {
      const exempt = ensureObject(spec, 'exempt');
      if (exempt !== undefined) preset(exempt, { nominalConcurrencyShares: 0, lendablePercent: 0 });
    }
    if (limited === undefined) return;
    preset(limited, { nominalConcurrencyShares: 30, lendablePercent: 0 });
    const queuing = member(member(limited, 'limitResponse'), 'queuing');
    if (queuing !== undefined) preset(queuing, { queues: 64, handSize: 8, queueLengthLimit: 50 });
  },
};
