/**
 * LimitRanger: fills in the requests and limits a namespace prescribes, then refuses what lies outside its ranges
 * (plugin/pkg/admission/limitranger).
 */

import type { DeepReadonly, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { forbidden } from '@coracle/apimachinery/meta/status';
import { formatQuantity, milliValue, type Quantity } from '@coracle/apimachinery/quantity/quantity';
import { type Amounts, toAmounts } from '@coracle/apimachinery/quota/amounts';
import { type PodSpecParts, podAmounts } from '@coracle/apimachinery/quota/pod-amounts';
import type { LimitRangeItem } from '@coracle/apimachinery/types/types';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

const RANGES_PREFIX = '/limitranges';
const ANNOTATION = 'kubernetes.io/limit-ranger';

type ResourceList = Record<string, string>;
type LimitItem = DeepReadonly<LimitRangeItem>;
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
      const ranges = rangesOf(namespace);
      return ranges.length === 0 ? undefined : fillIn(object!, ranges);
    },
    validate(attributes) {
      const { info, object, namespace } = attributes;
      if (object!.metadata.deletionTimestamp !== undefined) return;
      const ranges = rangesOf(namespace);
      if (ranges.length === 0) return;
      const refuse = (problems: readonly string[]): void => {
        const unique = [...new Set(problems)];
        throw forbidden(info, attributes.name, unique.length === 1 ? unique[0]! : `[${unique.join(', ')}]`);
      };
      return info.resource === 'pods' ? validatePod(object!, ranges, refuse) : validateClaim(object!, ranges, refuse);
    },
  };
}

type Ranges = readonly (readonly LimitItem[])[];
type Refuse = (problems: readonly string[]) => void;

/** Containers held against ranges in one go: others are served before the next. */
const TOGETHER = 500;

function containersOf(pod: Readonly<UnstructuredObject>): MutableContainer[] {
  const spec = pod['spec'];
  if (!isJsonObject(spec)) return [];
  const { containers = [], initContainers = [] } = spec as Record<string, MutableContainer[] | undefined>;
  return [...(containers ?? []), ...(initContainers ?? [])];
}

async function fillIn(pod: UnstructuredObject, ranges: Ranges): Promise<void> {
  for (const limits of ranges) await fillInOne(pod, limits);
}

async function fillInOne(pod: UnstructuredObject, limits: readonly LimitItem[]): Promise<void> {
  const spec = pod['spec'];
  if (!isJsonObject(spec)) return;
  const defaults: ResourceList = {};
  const requests: ResourceList = {};
  for (const item of limits) {
    if (item.type !== 'Container') continue;
    Object.assign(defaults, item.default);
    Object.assign(requests, item.defaultRequest);
  }
  const sides = [
    ['requests', requests, 'request', Object.keys(requests).sort()],
    ['limits', defaults, 'limit', Object.keys(defaults).sort()],
  ] as const;
  const filled: string[] = [];
  const fill = (container: MutableContainer, kind: string): void => {
    container.resources ??= {};
    const { resources } = container;
    for (const [side, values, word, names] of sides) {
      const held = resources[side] ?? {};
      const added = names.filter((name) => held[name] === undefined);
      if (added.length === 0) continue;
      for (const name of added) held[name] = values[name]!;
      resources[side] = held;
      filled.push(`${added.join(', ')} ${word} for ${kind} ${container.name}`);
    }
  };
  let looked = 0;
  for (const [member, kind] of [
    ['containers', 'container'],
    ['initContainers', 'init container'],
  ] as const) {
    for (const container of (spec[member] as MutableContainer[] | undefined) ?? []) {
      fill(container, kind);
      if (++looked % TOGETHER === 0) await nextTurn();
    }
  }
  if (filled.length === 0) return;
  pod.metadata.annotations = {
    ...pod.metadata.annotations,
    [ANNOTATION]: `LimitRanger plugin set: ${filled.join('; ')}`,
  };
  // Worked out of the resources, which are others now; the defaults set it again.
  if (isJsonObject(pod['status'])) delete pod['status']['qosClass'];
}

/** Each container is measured once, each bound read once. */
async function validatePod(pod: Readonly<UnstructuredObject>, ranges: Ranges, refuse: Refuse): Promise<void> {
  let looked = 0;
  const spec = (pod['spec'] ?? {}) as PodSpecParts;
  let containers: Measured[] | undefined;
  let whole: Measured | undefined;
  for (const limits of ranges) {
    const problems: string[] = [];
    for (const item of limits) {
      if (item.type === 'Container') {
        if (containers === undefined) {
          containers = [];
          for (const { resources } of containersOf(pod)) {
            containers.push({ requests: toAmounts(resources?.requests), limits: toAmounts(resources?.limits) });
            if (++looked % TOGETHER === 0) await nextTurn();
          }
        }
        const validateRules = outside(item);
        for (const measured of containers) {
          for (const problem of validateRules(measured)) problems.push(problem);
          if (++looked % TOGETHER === 0) await nextTurn();
        }
      }
      if (item.type === 'Pod') {
        const how = { overhead: false };
        whole ??= { requests: podAmounts(spec, 'requests', how), limits: podAmounts(spec, 'limits', how) };
        problems.push(...outside(item)(whole));
        if (++looked % TOGETHER === 0) await nextTurn();
      }
    }
    if (problems.length > 0) refuse(problems);
  }
}

async function validateClaim(claim: Readonly<UnstructuredObject>, ranges: Ranges, refuse: Refuse): Promise<void> {
  let looked = 0;
  for (const limits of ranges) {
    const problems = claimProblems(claim, limits);
    if (problems.length > 0) refuse(problems);
    if (++looked % TOGETHER === 0) await nextTurn();
  }
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

function outside(item: LimitItem): (measured: Measured) => string[] {
  const { type } = item;
  const [min, max, ratio] = [sorted(item.min), sorted(item.max), sorted(item.maxLimitRequestRatio)];
  return (measured) => [
    ...min.flatMap(([name, bound]) => tooLittle(type, { name, bound }, measured)),
    ...max.flatMap(([name, bound]) => tooMuch(type, { name, bound }, measured)),
    ...ratio.flatMap(([name, bound]) => tooFar(type, { name, bound }, measured)),
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
