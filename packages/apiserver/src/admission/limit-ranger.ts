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
          for (const { resources } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
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
  const { resources } = (claim['spec'] ?? {}) as { resources?: { requests?: ResourceList } };
  const measured: Measured = { requests: toAmounts(resources?.requests), limits: new Map() };
  let looked = 0;
  for (const limits of ranges) {
    const items = limits.filter(({ type }) => type === 'PersistentVolumeClaim');
    const problems = items.flatMap((item) => outside(item)(measured));
    if (problems.length > 0) refuse(problems);
    if (++looked % TOGETHER === 0) await nextTurn();
  }
}

const sorted = (list: ResourceList | undefined): [string, Quantity][] =>
  [...toAmounts(list)].sort(([a], [b]) => (a < b ? -1 : 1));

/** What is wrong with what was measured, by an item's bounds. A claim has requests only, and no ratio. */
function outside(item: LimitItem): (measured: Measured) => string[] {
  const { type } = item;
  const isClaim = type === 'PersistentVolumeClaim';
  const [min, max] = [sorted(item.min), sorted(item.max)];
  const ratios = isClaim ? [] : sorted(item.maxLimitRequestRatio);
  const usage = (end: string, name: string, bound: Quantity): string =>
    `${end} ${name} usage per ${type} is ${formatQuantity(bound)}`;
  return ({ requests, limits }) => {
    const sides = (name: string): { readonly request: Side; readonly limit: Side } => ({
      request: ['request', requests.get(name)],
      limit: ['limit', limits.get(name)],
    });
    return [
      ...min.flatMap(([name, bound]) => {
        const { request, limit } = sides(name);
        return beyond(usage('minimum', name, bound), [request, limit], ({ nano }) => nano < bound.nano);
      }),
      ...max.flatMap(([name, bound]) => {
        const { request, limit } = sides(name);
        const both = isClaim ? [request] : [limit, request];
        return beyond(usage('maximum', name, bound), both, ({ nano }) => nano > bound.nano);
      }),
      ...ratios.flatMap(([name, bound]) => tooFar(type, { name, bound }, { requests, limits })),
    ];
  };
}

type Side = readonly [word: string, amount: Quantity | undefined];

/** The first side has to be given; the first one that is beyond the bound of the rule is reported. */
function beyond(rule: string, sides: readonly Side[], isBeyond: (amount: Quantity) => boolean): string[] {
  const [[word, amount]] = sides as readonly [Side];
  if (!amount) return [`${rule}.  No ${word} is specified`];
  const found = sides.find((side) => side[1] && isBeyond(side[1]));
  return found ? [`${rule}, but ${found[0]} is ${formatQuantity(found[1]!)}`] : [];
}

function tooFar(
  type: string,
  { name, bound }: { readonly name: string; readonly bound: Quantity },
  { requests, limits }: Measured,
): string[] {
  const [request, limit] = [requests.get(name), limits.get(name)];
  const rule = `${name} max limit to request ratio per ${type} is ${formatQuantity(bound)}`;
  if (!request || request.nano === 0n) return [`${rule}, but no request is specified or request is 0`];
  if (!limit || limit.nano === 0n) return [`${rule}, but no limit is specified or limit is 0`];
  const ratio = milliValue(limit) / milliValue(request);
  return ratio * 1000 > milliValue(bound) ? [`${rule}, but provided ratio is ${ratio.toFixed(6)}`] : [];
}
