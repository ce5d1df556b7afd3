/** Machines that may be deleted only when they are stopped: their instance is looked up in what is stored. */

import { forbidden } from '@coracle/apimachinery/meta/status';
import type { AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import type { ReadonlyVm, ReadonlyVmi } from '@coracle/kubevirt/kinds/kubevirt';
import { mustStopFirst, notStopped } from '@coracle/kubevirt/rules/protection/delete-when-stopped';
import type { ProtectionSettings } from '@coracle/kubevirt/rules/protection/protection-settings';
import type { RefusalEvidence } from './refusal-evidence.ts';

const NAME = 'DeleteOnlyWhenStopped';
const INSTANCES = 'kubevirt.io/virtualmachineinstances';

/** Makes the plug-in. */
export function deleteWhenStopped({
  store,
  settings,
  evidence,
}: {
  readonly store: Pick<ObjectStore, 'peek'>;
  readonly settings: () => ProtectionSettings;
  readonly evidence: RefusalEvidence;
}): AdmissionPlugin {
  return {
    name: NAME,
    matches: (operation, { group, resource }, subresource) =>
      operation === 'DELETE' && subresource === '' && group === 'kubevirt.io' && resource === 'virtualmachines',
    validate(attributes) {
      const { info, namespace, oldObject } = attributes;
      const vm = oldObject as unknown as ReadonlyVm | undefined;
      if (!vm || !mustStopFirst(vm, settings())) return;
      // Of the object: the request of a collection names none.
      const { name = '' } = vm.metadata;
      const vmi = store.peek({ prefix: INSTANCES, namespace, name })?.object;
      const why = notStopped(vm, vmi as unknown as ReadonlyVmi | undefined);
      if (why === undefined) return;
      evidence.refused(attributes, { policy: NAME, reason: 'NotStopped', message: why });
      throw forbidden(info, name, why);
    },
  };
}
