/** The architecture of a disk image decides that of the machine which says none (kubevirt pkg/defaults). */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVm, VirtualMachine } from '../../../kinds/kubevirt.ts';
import { INFERENCE_RESOURCES } from '../../../rules/instancetype/infer.ts';
import { ARCHITECTURES } from '../../../rules/machine-defaults/cluster-config.ts';

const LABEL = 'template.kubevirt.io/architecture';
const DATA_SOURCES: ResourceType<KubeObject> = {
  ...INFERENCE_RESOURCES.datasources,
  resource: 'datasources',
  namespaced: true,
};

interface DataSourceRef {
  readonly kind?: string;
  readonly name?: string;
  readonly namespace?: string;
}
interface DataSource extends KubeObject {
  readonly spec?: { readonly source?: { readonly dataSource?: DataSourceRef } };
}

const referencesOf = ({ spec }: ReadonlyVm): DataSourceRef[] =>
  (spec.dataVolumeTemplates ?? [])
    .map((template) => (template.spec as { sourceRef?: DataSourceRef } | undefined)?.sourceRef)
    .filter((ref) => ref?.kind?.toLowerCase() === 'datasource') as DataSourceRef[];

/** Whether there is anything to look up for `setSourceArchitecture`. */
export const needsSourceArchitecture = (vm: ReadonlyVm): boolean =>
  vm.spec?.template !== undefined && !vm.spec.template.spec?.architecture && referencesOf(vm).length > 0;

/**
 * Gives the template the architecture that the first labelled DataSource of its DataVolumes names. What cannot be read,
 * and an architecture that is none, is passed over. Changes `vm`.
 */
export async function setSourceArchitecture(vm: VirtualMachine, client: Client): Promise<void> {
  if (!needsSourceArchitecture(vm)) return;
  const read = (ref: DataSourceRef, namespace: string): Promise<DataSource | undefined> =>
    client.get(DATA_SOURCES, { namespace: ref.namespace || namespace, name: ref.name ?? '' }).then(
      (found) => found as DataSource,
      () => undefined,
    );
  for (const ref of referencesOf(vm)) {
    let source = await read(ref, vm.metadata.namespace ?? '');
    const inner = source?.spec?.source?.dataSource;
    // One DataSource may stand for another, but no further.
    if (inner !== undefined) source = await read(inner, source?.metadata.namespace ?? '');
    const architecture = source?.metadata.labels?.[LABEL];
    if (!(ARCHITECTURES as readonly (string | undefined)[]).includes(architecture)) continue;
    vm.spec.template.spec = { ...vm.spec.template.spec, architecture } as NonNullable<typeof vm.spec.template.spec>;
    return;
  }
}
