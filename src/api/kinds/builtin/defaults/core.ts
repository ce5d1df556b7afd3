/** Defaults of the core group (core/v1 defaults.go and the create strategies of pkg/registry/core). */
import { encodeBase64 } from '../../../meta/base64.ts';
import { setOwn } from '../../../meta/own-property.ts';
import { Pace, type Steps } from '../../../meta/steps.ts';
import { setPodOnlyDefaults, setPodSpecDefaults, setSourceDefaults } from './pod-spec.ts';
import { ensureObject, type GroupDefaults, type MutableObject, member, members, preset } from './preset.ts';
import { qosClassOf } from './qos.ts';

const CLIENT_IP_SECONDS = 10_800;

function* setPodDefaults(pod: MutableObject): Steps<void> {
  const spec = ensureObject(pod, 'spec');
  if (spec === undefined) return;
  const pace = new Pace();
  yield* setPodSpecDefaults(spec, pace);
  yield* setPodOnlyDefaults(spec, pace);
  const status = ensureObject(pod, 'status');
  if (status === undefined) return;
  preset(status, { phase: 'Pending', qosClass: qosClassOf(pod) });
  for (const [one, many] of [
    ['podIP', 'podIPs'],
    ['hostIP', 'hostIPs'],
  ] as const) {
    if (typeof status[one] === 'string' && status[one] !== '') preset(status, { [many]: [{ ip: status[one] }] });
  }
}

/** The defaults of a pod template; the template itself may be missing, validation says so. */
export function* setTemplateDefaults(holder: MutableObject | undefined): Steps<void> {
  const template = member(holder, 'template');
  const spec = template === undefined ? undefined : ensureObject(template, 'spec');
  if (spec !== undefined) yield* setPodSpecDefaults(spec, new Pace());
}

function setServiceDefaults(service: MutableObject): void {
  const spec = ensureObject(service, 'spec');
  if (spec === undefined) return;
  preset(spec, { sessionAffinity: 'None', type: 'ClusterIP' });
  const type = spec['type'];
  if (spec['sessionAffinity'] === 'ClientIP') {
    const config = ensureObject(spec, 'sessionAffinityConfig');
    const clientIP = config === undefined ? undefined : ensureObject(config, 'clientIP');
    if (clientIP !== undefined) preset(clientIP, { timeoutSeconds: CLIENT_IP_SECONDS });
  }
  for (const port of members(spec, 'ports')) {
    preset(port, { protocol: 'TCP' });
    if (port['targetPort'] === '' || port['targetPort'] === 0) delete port['targetPort'];
    preset(port, { targetPort: port['port'] });
  }
  const exposed = type === 'NodePort' || type === 'LoadBalancer';
  const hasExternalIps = Array.isArray(spec['externalIPs']) && spec['externalIPs'].length > 0;
  if (exposed || (type === 'ClusterIP' && hasExternalIps)) preset(spec, { externalTrafficPolicy: 'Cluster' });
  if (type === 'LoadBalancer') preset(spec, { allocateLoadBalancerNodePorts: true });
  if (type !== 'ExternalName') {
    preset(spec, { internalTrafficPolicy: 'Cluster', ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' });
  }
  if (typeof spec['clusterIP'] === 'string' && spec['clusterIP'] !== '') {
    preset(spec, { clusterIPs: [spec['clusterIP']] });
  }
  const status = ensureObject(service, 'status');
  if (status !== undefined) preset(status, { loadBalancer: {} });
}

function setNamespaceDefaults(namespace: MutableObject): void {
  const metadata = ensureObject(namespace, 'metadata');
  if (metadata === undefined) return;
  const name = metadata['name'];
  const labels = ensureObject(metadata, 'labels');
  if (labels !== undefined && typeof name === 'string' && name !== '') {
    labels['kubernetes.io/metadata.name'] = name;
  }
  // A namespace on its way out loses `kubernetes` through /finalize: it must not come back.
  if (metadata['deletionTimestamp']) return;
  const spec = ensureObject(namespace, 'spec');
  if (spec !== undefined) preset(spec, { finalizers: ['kubernetes'] });
  const status = ensureObject(namespace, 'status');
  if (status !== undefined) preset(status, { phase: 'Active' });
}

function setSecretDefaults(secret: MutableObject): void {
  if (secret['type'] === '') delete secret['type'];
  preset(secret, { type: 'Opaque' });
  const plain = member(secret, 'stringData');
  if (plain !== undefined) {
    const data = ensureObject(secret, 'data');
    const encoder = new TextEncoder();
    for (const [key, value] of Object.entries(plain)) {
      if (data !== undefined && typeof value === 'string') setOwn(data, key, encodeBase64(encoder.encode(value)));
    }
  }
  delete secret['stringData'];
}

export function setClaimDefaults(claim: MutableObject): void {
  const spec = ensureObject(claim, 'spec');
  if (spec !== undefined) preset(spec, { volumeMode: 'Filesystem' });
  const status = ensureObject(claim, 'status');
  if (status !== undefined) preset(status, { phase: 'Pending' });
}

function setVolumeDefaults(volume: MutableObject): void {
  const spec = ensureObject(volume, 'spec');
  if (spec !== undefined) {
    preset(spec, { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' });
    setSourceDefaults(spec);
  }
  const status = ensureObject(volume, 'status');
  if (status !== undefined) preset(status, { phase: 'Pending' });
}

function* setReplicationControllerDefaults(controller: MutableObject): Steps<void> {
  const spec = ensureObject(controller, 'spec');
  const labels = member(member(member(spec, 'template'), 'metadata'), 'labels');
  if (spec === undefined) return;
  preset(spec, { replicas: 1 });
  if (labels !== undefined) preset(spec, { selector: { ...labels } });
  yield* setTemplateDefaults(spec);
}

function setLimitRangeDefaults(range: MutableObject): void {
  for (const limit of members(member(range, 'spec'), 'limits')) {
    if (limit['type'] !== 'Container') continue;
    const defaults = ensureObject(limit, 'default');
    const requests = ensureObject(limit, 'defaultRequest');
    if (defaults === undefined || requests === undefined) continue;
    preset(defaults, member(limit, 'max') ?? {});
    preset(requests, defaults);
    preset(requests, member(limit, 'min') ?? {});
    for (const key of ['default', 'defaultRequest']) {
      if (Object.keys(member(limit, key) ?? {}).length === 0) delete limit[key];
    }
  }
}

export const CORE_DEFAULTS: GroupDefaults = {
  pods: setPodDefaults,
  podtemplates: setTemplateDefaults,
  services: setServiceDefaults,
  namespaces: setNamespaceDefaults,
  secrets: setSecretDefaults,
  persistentvolumeclaims: setClaimDefaults,
  persistentvolumes: setVolumeDefaults,
  replicationcontrollers: setReplicationControllerDefaults,
  limitranges: setLimitRangeDefaults,
  endpoints: (endpoints) => {
    for (const subset of members(endpoints, 'subsets')) {
      for (const port of members(subset, 'ports')) preset(port, { protocol: 'TCP' });
    }
  },
};
