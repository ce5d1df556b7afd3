/**
 * ResourceQuota: a write that would take more than a namespace's quotas allow is refused, else it is charged to them
 * (apiserver/pkg/admission/plugin/resourcequota). Checking and charging a quota are one synchronous step against the
 * newest decided state, so two writes at once cannot both take the last share. What was charged for a write that failed
 * afterwards is given back by the quota controller.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type ApiError, forbidden } from '@coracle/apimachinery/meta/status';
import {
  type Amounts,
  beyond,
  fromAmounts,
  masked,
  minus,
  plus,
  printAmounts,
  toAmounts,
} from '@coracle/apimachinery/quota/amounts';
import { type QuotaEvaluator, quotaEvaluator, quotaMatches } from '@coracle/apimachinery/quota/evaluator';
import type { ResourceQuota } from '@coracle/apimachinery/types/types';
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ObjectStore, StoredObject } from '../cache/object-store.ts';
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

const QUOTAS_PREFIX = '/resourcequotas';

type QuotaParts = DeepReadonly<ResourceQuota>;

/** One quota that has a say, and what it will have given out. */
interface Charge {
  readonly quota: StoredObject;
  readonly used: Amounts;
}

/** The plug-in over this store's quotas. It has to be the last of the chain: nothing may refuse what it has charged. */
export function resourceQuota(
  store: Pick<ObjectStore, 'count' | 'list' | 'peek' | 'write'>,
  clock: Clock,
): AdmissionPlugin {
  const charge = ({ quota, used }: Charge): void => {
    // Not waited for: the object's own write is decided after it and becomes durable after it. Should only this one
    // fail, the quota controller counts again.
    store
      .write(quota, (current) => {
        if (current?.revision !== quota.revision) return { type: 'keep' };
        const next = cloneJson<UnstructuredObject>(current.object);
        next['status'] = { ...(current.object as QuotaParts).status, used: fromAmounts(used) };
        return { type: 'put', object: next };
      })
      .catch(() => {});
  };
  return {
    name: 'ResourceQuota',
    matches: (operation, info, subresource) =>
      info.namespaced &&
      (operation === 'CREATE'
        ? subresource === ''
        : operation === 'UPDATE' && (subresource === '' || subresource === 'resize')) &&
      store.count(QUOTAS_PREFIX) > 0,
    validate(attributes) {
      const { items } = store.list(QUOTAS_PREFIX, { namespace: attributes.namespace });
      if (items.length === 0) return;
      const evaluator = quotaEvaluator(attributes.info);
      const { operation, subresource } = attributes;
      if (!evaluator || !(operation === 'CREATE' || subresource === 'resize' || evaluator.chargesUpdates)) return;
      const take = (some: readonly StoredObject[], charges: boolean): void => {
        const newest = some.map((item) => store.peek(item)).filter((item) => item !== undefined);
        const due = chargesFor(attributes, { quotas: newest, evaluator, now: clock.now() });
        if (charges) due.forEach(charge);
      };
      if (items.length > TOGETHER) return takeInPieces(items, take, attributes.dryRun);
      take(items, !attributes.dryRun);
    },
  };
}

/** Quotas that are checked and charged in one go. */
const TOGETHER = 50;

/**
 * A namespace of thousands of quotas: all are asked before the first is charged. Each is asked again as it is charged; when
 * one refuses only then, what the others were charged is given back as that of a write that failed.
 */
async function takeInPieces(
  items: readonly StoredObject[],
  take: (some: readonly StoredObject[], charges: boolean) => void,
  dryRun: boolean,
): Promise<void> {
  for (const charges of dryRun ? [false] : [false, true]) {
    for (let from = 0; from < items.length; from += TOGETHER) {
      take(items.slice(from, from + TOGETHER), charges);
      await nextTurn();
    }
  }
}

/** What each quota is charged. Throws ApiError 403 when one does not allow it. */
function chargesFor(
  attributes: AdmissionAttributes,
  how: { readonly quotas: readonly StoredObject[]; readonly evaluator: QuotaEvaluator; readonly now: number },
): Charge[] {
  const { quotas, evaluator, now } = how;
  const object = attributes.object!;
  const interested: { quota: StoredObject; hard: Amounts; used: Amounts }[] = [];
  for (const quota of quotas) {
    const { spec, status } = quota.object as QuotaParts;
    const hard = toAmounts(status?.hard);
    if (!quotaMatches(evaluator, { hard: hard.keys(), spec }, object)) continue;
    const names = [...hard.keys()].filter((name) => evaluator.counts(name)).sort();
    const missing = attributes.operation === 'CREATE' ? evaluator.missing?.(object, names) : undefined;
    if (missing !== undefined) throw refuse(attributes, `failed quota: ${quota.name}: must specify ${missing}`);
    const used = toAmounts(status?.used);
    const unknown = names.filter((name) => !used.has(name));
    if (unknown.length > 0) {
      throw refuse(attributes, `status unknown for quota: ${quota.name}, resources: ${unknown.join(',')}`);
    }
    interested.push({ quota, hard, used });
  }
  if (interested.length === 0) return [];

  const before = attributes.oldObject;
  const usage = evaluator.usage(object, now);
  const delta = before ? minus(usage, evaluator.usage(before, now)) : usage;
  const asked = new Map([...delta].filter(([, { nano }]) => nano !== 0n));
  if (asked.size === 0) return [];
  const charges: Charge[] = [];
  for (const { quota, hard, used } of interested) {
    const requested = masked(asked, hard);
    if (requested.size === 0) continue;
    const next = plus(used, requested);
    // Giving back is always allowed, also where a lowered limit leaves too much in use.
    const exceeded = beyond(masked(next, new Map([...requested].filter(([, { nano }]) => nano > 0n))), hard);
    if (exceeded.size > 0) {
      const print = (amounts: Amounts): string => printAmounts(masked(amounts, exceeded));
      throw refuse(
        attributes,
        `exceeded quota: ${quota.name}, requested: ${print(requested)}, used: ${print(used)}, limited: ${print(hard)}`,
      );
    }
    charges.push({ quota, used: next });
  }
  return charges;
}

const refuse = ({ info, name }: AdmissionAttributes, why: string): ApiError => forbidden(info, name, why);
