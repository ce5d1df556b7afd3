/** Instances as upstream's metrics have them (pkg/monitoring/metrics/virt-controller/vmistats_collector.go). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { quantityToBytes, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { isMigratable } from '../eviction/eviction-decision.ts';
import { type MatcherField, SOURCE_ANNOTATIONS } from '../instancetype/matcher.ts';
import { OUTDATED_LABEL } from '../live-update/workload-update-plan.ts';
import { gauge, MAX_OBJECTS, NONE, sourceName, systemLabels } from './sample.ts';
import { type MetricSource, vnicsOf } from './vm-metrics.ts';

/** What an instance stands on. */
export interface VmiLookups {
  /** The object that an annotation names; undefined when it is not there. */
  source(
    vmi: ReadonlyVmi,
    of: { readonly field: MatcherField; readonly scope: Scope },
  ): DeepReadonly<MetricSource> | undefined;
  /** Name of the Pod it runs in; '' when it runs in none. */
  podName(vmi: ReadonlyVmi): string;
  /** Where an instance has no strategy of its own. */
  readonly evictionStrategy: string | undefined;
}

type Scope = 'namespaced' | 'cluster';
const SCOPES: readonly Scope[] = ['namespaced', 'cluster'];

const of = ({ metadata, status }: ReadonlyVmi) => ({
  node: status?.nodeName ?? '',
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** The families of instances; of the first 10,000, but for the count of outdated ones. */
export function vmiMetrics(all: readonly ReadonlyVmi[], lookups: VmiLookups): ValueFamily[] {
  const vmis = all.slice(0, MAX_OBJECTS);
  const canBeEvicted = (vmi: ReadonlyVmi): boolean =>
    (vmi.spec.evictionStrategy ?? lookups.evictionStrategy) !== 'LiveMigrate' || isMigratable(vmi);
  return [
    gauge(
      'kubevirt_vmi_info',
      'Information about VirtualMachineInstances.',
      vmis.map((vmi) => ({
        labels: { ...infoOf(vmi, lookups), evictable: String(canBeEvicted(vmi)) },
        value: 1,
      })),
    ),
    gauge(
      'kubevirt_vmi_non_evictable',
      'Indication for a VirtualMachine that its eviction strategy is set to Live Migration but is not migratable.',
      vmis.map((vmi) => ({ labels: of(vmi), value: canBeEvicted(vmi) ? 0 : 1 })),
    ),
    gauge(
      'kubevirt_vmi_number_of_outdated',
      'Indication for the total number of VirtualMachineInstance workloads that are not running within the most up-to-date version of the virt-launcher environment.',
      [{ labels: {}, value: all.filter(isOutdated).length }],
    ),
    gauge(
      'kubevirt_vmi_status_addresses',
      "The addresses of a VirtualMachineInstance. This metric provides the address of an available network interface associated with the VMI in the 'address' label, and about the type of address, such as internal IP, in the 'type' label.",
      vmis.flatMap(addresses),
    ),
    gauge(
      'kubevirt_vmi_vnic_info',
      'Details of VirtualMachineInstance (VMI) vNIC interfaces, such as vNIC name, binding type, network name, and binding name for each vNIC of a running instance.',
      vmis.flatMap((vmi) => {
        const { namespace, name } = of(vmi);
        return vnicsOf(vmi.spec).map((vnic) => ({ labels: { name, namespace, ...vnic }, value: 1 }));
      }),
    ),
    gauge(
      'kubevirt_vmi_launcher_memory_overhead_bytes',
      "Estimation of the memory amount required for virt-launcher's infrastructure components (e.g. libvirt, QEMU).",
      vmis.flatMap((vmi) => {
        const overhead = readQuantity(vmi.status?.memory?.memoryOverhead);
        const { namespace, name } = of(vmi);
        return overhead ? [{ labels: { namespace, name }, value: quantityToBytes(overhead) }] : [];
      }),
    ),
  ];
}

const isOutdated = ({ metadata }: ReadonlyVmi): boolean => metadata.labels?.[OUTDATED_LABEL] !== undefined;

function infoOf(vmi: ReadonlyVmi, lookups: VmiLookups) {
  const { annotations } = vmi.metadata;
  const { guestOSInfo: os, machine, phase } = vmi.status ?? {};
  const named = (field: MatcherField): string => {
    const scope = SCOPES.find((one) => annotations?.[SOURCE_ANNOTATIONS[field][one]] !== undefined);
    return scope ? sourceName(lookups.source(vmi, { field, scope })) : NONE;
  };
  return {
    ...of(vmi),
    phase: (phase ?? '').toLowerCase(),
    ...systemLabels(annotations),
    instance_type: named('instancetype'),
    preference: named('preference'),
    guest_os_kernel_release: os?.kernelRelease ?? '',
    guest_os_machine: machine?.type ?? '',
    guest_os_arch: os?.machine ?? '',
    guest_os_name: os?.name ?? '',
    guest_os_version_id: os?.versionId ?? '',
    outdated: String(isOutdated(vmi)),
    vmi_pod: lookups.podName(vmi),
  };
}

const addresses = (vmi: ReadonlyVmi): ValueFamily['samples'] =>
  (vmi.status?.interfaces ?? [])
    .filter(({ ipAddress, name, interfaceName }) => ipAddress || name || interfaceName)
    .map(({ ipAddress, name, interfaceName }) => ({
      labels: {
        ...of(vmi),
        ...{ vnic_name: name ?? '', interface_name: interfaceName ?? '', address: ipAddress ?? '' },
        type: ipAddress ? 'ExternalInterface' : 'SystemInterface',
      },
      value: 1,
    }));
