/** What the controllers of replica sets and of pools share: what a member that comes or goes means, and what they report. */

import { type DeepReadonly, type KubeObject, keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { formatLabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { Source } from '@coracle/client/controller/controller';
import type { Expectations } from '@coracle/client/expectations/expectations';
import type { Informer } from '@coracle/client/informer/informer';
import type { ReadonlyPool, VirtualMachineInstanceReplicaSet } from '../kinds/kubevirt.ts';
import { selectorOf } from '../rules/sets/claim-members.ts';
import { type SetProblem, setConditions } from '../rules/sets/set-conditions.ts';

/** Notes in the expectations that a member has come or goes; the keys of the sets that it belongs to. */
export const observeMembers =
  <T extends KubeObject>(members: Informer<T>, owners: Source, expectations: Expectations) =>
  (member: DeepReadonly<T>, previous: DeepReadonly<T> | undefined): readonly ObjectKey[] => {
    const keys = owners.keys(member, previous);
    const uid = member.metadata.uid ?? '';
    const isGone = members.get(keyOf(member))?.metadata.uid !== uid;
    for (const key of keys) {
      if (!previous) expectations.observeCreation(keyText(key));
      if (isGone || isDeleting(member)) expectations.observeDeletion(keyText(key), uid);
    }
    return keys;
  };

/** What the status of a set says beside its counts. */
export const setReport = (
  set: ReadonlyPool | DeepReadonly<VirtualMachineInstanceReplicaSet>,
  problem: SetProblem | undefined,
  now: number,
) => ({
  labelSelector: formatLabelSelector(selectorOf(set)),
  conditions: setConditions(set.status?.conditions, { paused: set.spec.paused === true, problem, now }),
});
