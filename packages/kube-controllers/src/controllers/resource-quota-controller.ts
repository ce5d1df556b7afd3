/**
 * Counts what each ResourceQuota has given out (pkg/controller/resourcequota). Admission charges a write before it is
 * stored; this controller gives back what was deleted, has ended or was never stored, and fills in a new quota.
 *
 * Guarantee: a charge is never taken back before its object could be seen. A count above the status is written at once;
 * one below it only when the quota has stood still for `SETTLE_MS`, under the revision that was counted against. While
 * writes go on being charged the status stays too high, never too low.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { compareQuantity } from '@coracle/apimachinery/quantity/quantity';
import { fromAmounts, masked, toAmounts } from '@coracle/apimachinery/quota/amounts';
import { quotaEvaluator } from '@coracle/apimachinery/quota/evaluator';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { RESOURCE_QUOTAS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys, requeueAfter } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

import { BY_VALUE, QuotaUsage } from './quota-usage.ts';

export const resourceQuotaRules = policyRules(
  'list watch : core : resourcequotas',
  'patch : core : resourcequotas/status',
  'list watch : core : pods persistentvolumeclaims services',
  'list watch : resource.k8s.io : resourceclaims',
  'list watch : apiextensions.k8s.io : customresourcedefinitions',
  'list watch : apiregistration.k8s.io : apiservices',
  // Whatever a quota counts by number.
  'list : * : *',
  'get : /api /api/* /apis /apis/*',
);

/** How long a quota stands still before something is given back. */
const SETTLE_MS = 500;
/** Kinds counted by number are asked for this often: nothing watches them all. */
const COUNT_EVERY_MS = 2_000;
/** All others: as upstream's resync. */
const RESYNC_MS = 5 * 60_000;

/** Makes the controller; its keys are quotas. */
export function createResourceQuotaController(environment: ControllerEnvironment): Controller {
  const steps = new QuotaUsage(environment, (key, ms) => controller.enqueue(key, ms));
  const controller: Controller = createController({
    ...environment,
    name: 'resourcequota-controller',
    concurrency: 5,
    sources: [ownKeys(steps.quotas)],
    async reconcile(key, { signal }) {
      const quota = steps.quotas.get(key);
      const keyName = `${key.namespace}/${key.name}`;
      if (!quota) {
        steps.still.delete(keyName);
        return;
      }
      const hard = toAmounts(quota.spec?.hard);
      const byNumber = [...hard.keys()].some((name) => !BY_VALUE.some((type) => quotaEvaluator(type)!.counts(name)));
      const next = requeueAfter(byNumber ? COUNT_EVERY_MS : RESYNC_MS);
      const quiet = steps.stoodStill(keyName, quota.metadata.resourceVersion ?? '');
      const counted = await steps.usageOf(quota, hard, signal);
      const before = toAmounts(quota.status?.used);
      const lower = [...counted].some(([name, amount]) => {
        const known = before.get(name);
        return known !== undefined && compareQuantity(amount, known) < 0;
      });
      const used = fromAmounts(masked(new Map([...before, ...counted]), hard));
      const status = { hard: fromAmounts(hard), used };
      if (deepEqual(status, quota.status)) return next;
      if (lower && quiet < SETTLE_MS) return requeueAfter(SETTLE_MS - quiet);
      const change = { before: quota, after: { ...quota, status }, subresource: 'status', signal };
      await orAbsent(commit(steps.client, RESOURCE_QUOTAS, change));
      return next;
    },
  });
  return controller;
}
