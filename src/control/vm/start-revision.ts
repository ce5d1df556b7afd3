/**
 * The ControllerRevision taken at each start: it holds the VM spec the running instance was made from, so that a later
 * change can be told from what runs.
 */
import type { ControllerRevision } from '../../api/kinds/builtin/types.ts';
import type { VirtualMachine } from '../../api/kinds/kubevirt/kubevirt.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { ownerReferenceTo } from './owner-reference.ts';

type Spec = VirtualMachine['spec'];

/** `revision-start-vm-<uid>-<generation>`. */
export const startRevisionName = (vm: DeepReadonly<VirtualMachine>): string =>
  `revision-start-vm-${vm.metadata.uid}-${vm.metadata.generation ?? 0}`;

/** Prefix of all start revisions of a VM. */
export const startRevisionPrefix = (vm: DeepReadonly<VirtualMachine>): string =>
  `revision-start-vm-${vm.metadata.uid}-`;

/** The revision to create before an instance of this VM is made. */
export function startRevision(vm: DeepReadonly<VirtualMachine>): ControllerRevision {
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: startRevisionName(vm),
      namespace: vm.metadata.namespace ?? '',
      ownerReferences: [ownerReferenceTo(vm)],
    },
    data: { spec: cloneJson(vm.spec) as unknown as Record<string, unknown> },
    revision: vm.metadata.generation ?? 0,
  };
}

/** The template with the parts that admission or the controller fills in later set aside. */
function comparable(spec: DeepReadonly<Spec>): unknown {
  const template = cloneJson(spec.template) as Spec['template'];
  const firmware = template?.spec?.domain?.firmware;
  if (firmware) {
    delete firmware.uuid;
    delete firmware.serial;
    if (Object.keys(firmware).length === 0) delete template.spec?.domain?.firmware;
  }
  delete template?.metadata;
  return template;
}

/** True when the VM's template differs from the one its instance was started from: only a restart can apply that. */
export function restartRequired(vm: DeepReadonly<VirtualMachine>, revision: DeepReadonly<ControllerRevision>): boolean {
  const started = revision.data?.['spec'] as DeepReadonly<Spec> | undefined;
  return started !== undefined && !deepEqual(comparable(started), comparable(vm.spec));
}
