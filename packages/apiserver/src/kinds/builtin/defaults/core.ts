/** Defaults of the core group (core/v1 defaults.go and the create strategies of pkg/registry/core). */
import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { setOwn } from '@coracle/apimachinery/meta/own-property';
import { listAt, textAt } from '@coracle/apimachinery/types/read-value';
import { setPodOnlyDefaults, setPodSpecDefaults } from './pod-spec.ts';
import { ensureObject, type MutableObject, member, members, preset } from './preset.ts';
import { qosClassOf } from './qos.ts';

export function setPodDefaults(pod: MutableObject): void {
  const spec = ensureObject(pod, 'spec');
  if (spec === undefined) return;
  setPodSpecDefaults(spec);
  setPodOnlyDefaults(spec);
  const status = ensureObject(pod, 'status');
  if (status === undefined) return;
  preset(status, { phase: 'Pending', qosClass: qosClassOf(pod) });
  const { hostIP } = status;
  if (typeof hostIP === 'string' && hostIP !== '') preset(status, { hostIPs: [{ ip: hostIP }] });
  alignFirst(status, 'podIP', { field: 'podIPs', item: (ip) => ({ ip }), text: (item) => textAt(item, 'ip') });
}

/**
 * A field that became a list: the one value is the first of many. A client that knows but the one means no other, and one
 * that sends many need not send the one (core/v1 conversion.go).
 */
function alignFirst(
  holder: MutableObject,
  one: string,
  many: { readonly field: string; readonly item: (text: string) => unknown; readonly text: (item: unknown) => string },
): void {
  const single = textAt(holder, one);
  const [first] = listAt(holder, many.field);
  if (first === undefined) {
    if (single !== '') holder[many.field] = [many.item(single)];
  } else if (single === '') holder[one] = many.text(first);
  else if (single !== many.text(first)) holder[many.field] = [many.item(single)];
}

export function setNodeDefaults(node: MutableObject): void {
  const spec = member(node, 'spec');
  const status = member(node, 'status');
  // A node that keeps nothing for itself gives away all that it has.
  const capacity = member(status, 'capacity');
  if (status !== undefined && capacity !== undefined) preset(status, { allocatable: { ...capacity } });
  const text = (item: unknown): string => (typeof item === 'string' ? item : '');
  if (spec !== undefined) alignFirst(spec, 'podCIDR', { field: 'podCIDRs', item: (cidr) => cidr, text });
}

/** The defaults of a pod template; the template itself may be missing, validation says so. */
export function setTemplateDefaults(holder: MutableObject | undefined): void {
  const template = member(holder, 'template');
  const spec = template === undefined ? undefined : ensureObject(template, 'spec');
  if (spec !== undefined) setPodSpecDefaults(spec);
}

export function setServiceDefaults(service: MutableObject): void {
  const spec = member(service, 'spec');
  if (spec === undefined) return;
  if (spec['sessionAffinity'] === 'None') delete spec['sessionAffinityConfig'];
  for (const port of members(spec, 'ports')) {
    if (port['targetPort'] === '' || port['targetPort'] === 0) delete port['targetPort'];
    preset(port, { targetPort: port['port'] ?? 0 });
  }
  const { type, clusterIP } = spec;
  if (type === 'ClusterIP' && listAt(spec, 'externalIPs').length > 0)
    preset(spec, { externalTrafficPolicy: 'Cluster' });
  if (typeof clusterIP === 'string' && clusterIP !== '') preset(spec, { clusterIPs: [clusterIP] });
  if (type !== 'LoadBalancer') return;
  for (const ingress of members(member(member(service, 'status'), 'loadBalancer'), 'ingress')) {
    if (ingress['ip']) preset(ingress, { ipMode: 'VIP' });
  }
}

export function setNamespaceDefaults(namespace: MutableObject): void {
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

export function setSecretDefaults(secret: MutableObject): void {
  if (secret['type'] === '') delete secret['type'];
  preset(secret, { type: 'Opaque' });
  const plain = member(secret, 'stringData');
  if (plain !== undefined) {
    const data = ensureObject(secret, 'data');
    const encoder = new TextEncoder();
    for (const key of data === undefined ? [] : Object.keys(plain)) {
      const value = plain[key];
      if (typeof value === 'string') setOwn(data!, key, encodeBase64(encoder.encode(value)));
    }
  }
  delete secret['stringData'];
}

export function setReplicationControllerDefaults(controller: MutableObject): void {
  const spec = member(controller, 'spec');
  const labels = member(member(member(spec, 'template'), 'metadata'), 'labels');
  if (spec === undefined) return;
  if (labels !== undefined) {
    preset(spec, { selector: { ...labels } });
    const metadata = ensureObject(controller, 'metadata');
    if (metadata !== undefined && Object.keys(member(metadata, 'labels') ?? {}).length === 0) {
      metadata['labels'] = { ...labels };
    }
  }
  setTemplateDefaults(spec);
}

export function setLimitRangeDefaults(range: MutableObject): void {
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
