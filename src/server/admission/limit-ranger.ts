/**
 * LimitRanger: fills in the requests and limits a namespace prescribes, then refuses what lies outside its ranges
 * (plugin/pkg/admission/limitranger).
 */
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { isJsonObject } from '../../api/meta/own-property.ts';
import { forbidden } from '../../api/meta/status.ts';
import { formatQuantity, milliValue, type Quantity } from '../../api/quantity/quantity.ts';
import { type Amounts, toAmounts } from '../../api/quota/amounts.ts';
import { type PodSpecParts, podAmounts } from '../../api/quota/pod-amounts.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

const RANGES_PREFIX = '/limitranges';
const ANNOTATION = 'kubernetes.io/limit-ranger';

type ResourceList = Record<string, string>;
interface LimitItem {
  readonly type: string;
  readonly default?: ResourceList;
  readonly defaultRequest?: ResourceList;
  readonly min?: ResourceList;
  readonly max?: ResourceList;
  readonly maxLimitRequestRatio?: ResourceList;
}
interface MutableContainer {
  name: string;
  resources?: { requests?: ResourceList; limits?: ResourceList };
}
interface Measured {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

/** The plug-in over this store's ranges. */
export function limitRanger(store: Pick<ObjectStore, 'count' | 'list'>): AdmissionPlugin {
  const rangesOf = (namespace: string): readonly (readonly LimitItem[])[] =>
    store
      .list(RANGES_PREFIX, { namespace })
      .items.map(({ object }) => (object['spec'] as { limits?: LimitItem[] } | undefined)?.limits ?? []);
  return {
    name: 'LimitRanger',
    matches(operation, info, subresource) {
      if (info.group !== '' || (operation !== 'CREATE' && operation !== 'UPDATE')) return false;
      const concerned =
        info.resource === 'pods'
          ? (operation === 'CREATE' && subresource === '') || (operation === 'UPDATE' && subresource === 'resize')
          : info.resource === 'persistentvolumeclaims' && subresource === '';
      return concerned && store.count(RANGES_PREFIX) > 0;
    },
    mutate({ info, object, namespace, operation }) {
      if (info.resource !== 'pods' || operation !== 'CREATE') return;
      for (const limits of rangesOf(namespace)) fillIn(object!, limits);
    },
    validate(attributes) {
      const { info, object, namespace } = attributes;
      if (object!.metadata.deletionTimestamp !== undefined) return;
      for (const limits of rangesOf(namespace)) {
        const problems = info.resource === 'pods' ? podProblems(object!, limits) : claimProblems(object!, limits);
        if (problems.length === 0) continue;
        const unique = [...new Set(problems)];
        throw forbidden(info, attributes.name, unique.length === 1 ? unique[0]! : `[${unique.join(', ')}]`);
      }
    },
  };
}

function fillIn(pod: UnstructuredObject, limits: readonly LimitItem[]): void {
  const spec = pod['spec'];
  if (!isJsonObject(spec)) return;
  const defaults: ResourceList = {};
  const requests: ResourceList = {};
  for (const item of limits) {
    if (item.type !== 'Container') continue;
    Object.assign(defaults, item.default);
    Object.assign(requests, item.defaultRequest);
  }
  const done: string[] = [];
  const fill = (container: MutableContainer, kind: string): void => {
    container.resources ??= {};
    const { resources } = container;
    for (const [side, values, word] of [
      ['requests', requests, 'request'],
      ['limits', defaults, 'limit'],
    ] as const) {
      const held = resources[side] ?? {};
      const added = Object.keys(values)
        .filter((name) => held[name] === undefined)
        .sort();
      if (added.length === 0) continue;
      for (const name of added) held[name] = values[name]!;
      resources[side] = held;
      done.push(`${added.join(', ')} ${word} for ${kind} ${container.name}`);
    }
  };
  for (const container of (spec['containers'] as MutableContainer[] | undefined) ?? []) fill(container, 'container');
  for (const container of (spec['initContainers'] as MutableContainer[] | undefined) ?? []) {
    fill(container, 'init container');
  }
  if (done.length === 0) return;
  pod.metadata.annotations = {
    ...pod.metadata.annotations,
    [ANNOTATION]: `LimitRanger plugin set: ${done.join('; ')}`,
  };
  // Worked out of the resources, which are others now; the defaults set it again.
  if (isJsonObject(pod['status'])) delete pod['status']['qosClass'];
}

function podProblems(pod: Readonly<UnstructuredObject>, limits: readonly LimitItem[]): string[] {
  const spec = (pod['spec'] ?? {}) as PodSpecParts;
  const problems: string[] = [];
  for (const item of limits) {
    if (item.type === 'Container') {
      for (const { resources } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
        const measured = { requests: toAmounts(resources?.requests), limits: toAmounts(resources?.limits) };
        problems.push(...outside(item, measured));
      }
    }
    if (item.type === 'Pod') {
      const how = { overhead: false };
      problems.push(
        ...outside(item, { requests: podAmounts(spec, 'requests', how), limits: podAmounts(spec, 'limits', how) }),
      );
    }
  }
  return problems;
}

function claimProblems(claim: Readonly<UnstructuredObject>, limits: readonly LimitItem[]): string[] {
  const requests = toAmounts(
    (claim['spec'] as { resources?: { requests?: ResourceList } } | undefined)?.resources?.requests,
  );
  const none: Amounts = new Map();
  return limits
    .filter(({ type }) => type === 'PersistentVolumeClaim')
    .flatMap((item) => [
      ...sorted(item.min).flatMap(([name, bound]) => tooLittle(item.type, { name, bound }, { requests, limits: none })),
      ...sorted(item.max).flatMap(([name, bound]) => tooMuchAsked(item.type, { name, bound }, requests.get(name))),
    ]);
}

interface Bound {
  readonly name: string;
  readonly bound: Quantity;
}

const sorted = (list: ResourceList | undefined): [string, Quantity][] =>
  [...toAmounts(list)].sort(([a], [b]) => (a < b ? -1 : 1));

function outside(item: LimitItem, measured: Measured): string[] {
  return [
    ...sorted(item.min).flatMap(([name, bound]) => tooLittle(item.type, { name, bound }, measured)),
    ...sorted(item.max).flatMap(([name, bound]) => tooMuch(item.type, { name, bound }, measured)),
    ...sorted(item.maxLimitRequestRatio).flatMap(([name, bound]) => tooFar(item.type, { name, bound }, measured)),
  ];
}

function tooLittle(type: string, { name, bound }: Bound, { requests, limits }: Measured): string[] {
  const [request, limit] = [requests.get(name), limits.get(name)];
  const rule = `minimum ${name} usage per ${type} is ${formatQuantity(bound)}`;
  if (!request) return [`${rule}.  No request is specified`];
  if (request.nano < bound.nano) return [`${rule}, but request is ${formatQuantity(request)}`];
  return limit && limit.nano < bound.nano ? [`${rule}, but limit is ${formatQuantity(limit)}`] : [];
}

function tooMuch(type: string, { name, bound }: Bound, { requests, limits }: Measured): string[] {
  const [request, limit] = [requests.get(name), limits.get(name)];
  const rule = `maximum ${name} usage per ${type} is ${formatQuantity(bound)}`;
  if (!limit) return [`${rule}.  No limit is specified`];
  if (limit.nano > bound.nano) return [`${rule}, but limit is ${formatQuantity(limit)}`];
  return request && request.nano > bound.nano ? [`${rule}, but request is ${formatQuantity(request)}`] : [];
}

function tooMuchAsked(type: string, { name, bound }: Bound, request: Quantity | undefined): string[] {
  const rule = `maximum ${name} usage per ${type} is ${formatQuantity(bound)}`;
  if (!request) return [`${rule}.  No request is specified`];
  return request.nano > bound.nano ? [`${rule}, but request is ${formatQuantity(request)}`] : [];
}

function tooFar(type: string, { name, bound }: Bound, { requests, limits }: Measured): string[] {
  const [request, limit] = [requests.get(name), limits.get(name)];
  const rule = `${name} max limit to request ratio per ${type} is ${formatQuantity(bound)}`;
  if (!request || request.nano === 0n) return [`${rule}, but no request is specified or request is 0`];
  if (!limit || limit.nano === 0n) return [`${rule}, but no limit is specified or limit is 0`];
  const ratio = milliValue(limit) / milliValue(request);
  return ratio * 1000 > milliValue(bound) ? [`${rule}, but provided ratio is ${ratio.toFixed(6)}`] : [];
}
