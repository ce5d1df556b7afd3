/** The architecture of a disk image decides that of the machine which says none (kubevirt pkg/defaults). */

import type { ObjectMeta } from '@coracle/apimachinery/meta/object';
import type { Client } from '@coracle/client/client';
import { DATA_SOURCES, type DataSource, type ReadonlyVm, type VirtualMachine } from '../../../kinds/kubevirt.ts';
import { ARCHITECTURES } from '../../../rules/machine-defaults/cluster-config.ts';

const LABEL = 'template.kubevirt.io/architecture';

type Named = Partial<Pick<ObjectMeta, 'name' | 'namespace'>>;

const referencesOf = ({ spec }: ReadonlyVm): Named[] =>
  (spec.dataVolumeTemplates ?? [])
    .map((template) => template.spec?.sourceRef)
    .filter((ref) => ref?.kind?.toLowerCase() === 'datasource') as Named[];

/** Whether there is anything to look up for `setSourceArchitecture`. */
export const needsSourceArchitecture = (vm: ReadonlyVm): boolean =>
  vm.spec?.template !== undefined && !vm.spec.template.spec?.architecture && referencesOf(vm).length > 0;

/**
 * Gives the template the architecture that the first labelled DataSource of its DataVolumes names. What cannot be read,
 * and an architecture that is none, is passed over. Changes `vm`.
 */
export async function setSourceArchitecture(vm: VirtualMachine, client: Client): Promise<void> {
  if (!needsSourceArchitecture(vm)) return;
  const read = (ref: Named, namespace: string): Promise<DataSource | undefined> =>
    client.get(DATA_SOURCES, { namespace: ref.namespace || namespace, name: ref.name ?? '' }).catch(() => undefined);
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
