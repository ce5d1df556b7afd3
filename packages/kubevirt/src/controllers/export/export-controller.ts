/** The controller of VirtualMachineExports (kubevirt pkg/storage/export/export). Bytes are served elsewhere. */
import { type KubeObject, keyOf, type ObjectKey, type ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { controllerOwner, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { Runnable } from '@coracle/client/controller/environment';
import type { Informer } from '@coracle/client/informer/informer';
import { EXPORT_GROUP, type VirtualMachineExport } from '../../kinds/kubevirt.ts';
import { createExportContent, type ExportContent } from './export-content.ts';
import { type ExportControllerOptions, ExportSteps } from './export-steps.ts';

/** Rights the controller needs, and no others: tokens lie in the namespaces of the exports. */
export const exportControllerRules = policyRules(
  `get list watch delete : ${EXPORT_GROUP} : virtualmachineexports`,
  `patch : ${EXPORT_GROUP} : virtualmachineexports/status`,
  // What it makes blocks the deletion of its owner.
  `update : ${EXPORT_GROUP} : virtualmachineexports/finalizers`,
  'get list watch : kubevirt.io : virtualmachines virtualmachineinstances',
  'update : subresources.kubevirt.io : expand-vm-spec',
  'get list watch : snapshot.kubevirt.io : virtualmachinesnapshots virtualmachinesnapshotcontents',
  'get : snapshot.storage.k8s.io : volumesnapshots volumesnapshotcontents',
  'get list watch : cdi.kubevirt.io : datavolumes',
  'get list watch create : core : persistentvolumeclaims services',
  'get list watch : core : persistentvolumes nodes',
  'get list watch create delete : core : pods',
  'get create : core : secrets',
  'create patch : core : events',
);

/** Makes the controller, and the reader of what exports give beside bytes; nothing happens before `start`. */
export function createExportController(
  options: ExportControllerOptions,
): Runnable & { readonly content: ExportContent } {
  const { client, clock, log, targets } = options;
  const steps = new ExportSteps(options);
  const { stores } = steps;
  const inNamespace = ({ metadata }: ReadonlyObject): ObjectKey[] =>
    stores.exports.list(metadata.namespace).map((object) => keyOf(object as VirtualMachineExport));
  const sourcesIn = (informers: readonly unknown[]) =>
    informers.map((informer) => source(informer as Informer<KubeObject>, inNamespace));
  const controller = createController({
    name: 'export',
    client,
    log,
    clock,
    concurrency: 4,
    sources: [
      ownKeys(stores.exports),
      controllerOwner(stores.services, { group: EXPORT_GROUP, kind: 'VirtualMachineExport' }),
      ...sourcesIn([stores.claims, stores.pods, stores.dataVolumes, stores.vms, stores.vmis]),
      ...sourcesIn([stores.snapshots, stores.contents]),
      source(stores.volumes, ({ spec }) =>
        spec?.claimRef ? inNamespace({ metadata: { namespace: spec.claimRef.namespace ?? '' } } as KubeObject) : [],
      ),
    ],
    reconcile: async (key) => {
      const object = stores.exports.get(key);
      if (object) return steps.pass(object);
      targets.drop(key);
    },
  });
  return { ...controller, content: createExportContent(client, stores) };
}
