/** KubeVirt's families of `/metrics`, read off the store: whatever process the controllers run in. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Change, ObjectStore } from '@coracle/apiserver/cache/object-store';
import { evacuationMetrics } from '@coracle/kubevirt/controllers/evacuation/evacuation-metrics';
import { createPhaseTimes, migrationMetrics } from '@coracle/kubevirt/controllers/migration/migration-metrics';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '@coracle/kubevirt/kinds/kubevirt';
import { identityMetrics } from '@coracle/kubevirt/rules/identity/identity-metrics';
import { SOURCE_ANNOTATIONS, sourceType } from '@coracle/kubevirt/rules/instancetype/matcher';
import { CREATED_BY_LABEL } from '@coracle/kubevirt/rules/launcher/launcher-labels';
import { gauge, MAX_OBJECTS } from '@coracle/kubevirt/rules/metrics/sample';
import { type MetricSource, vmMetrics } from '@coracle/kubevirt/rules/metrics/vm-metrics';
import { vmiMetrics } from '@coracle/kubevirt/rules/metrics/vmi-metrics';
import { createVmiPhaseTimes } from '@coracle/kubevirt/rules/metrics/vmi-phase-times';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';

type Store = Pick<ObjectStore, 'get' | 'list' | 'watch' | 'revision'>;

const prefixOf = ({ group, resource }: ResourceType<unknown>): string => `${group}/${resource}`;

/** Begins to count; each call of what it returns is one look at every machine, instance and migration there is. */
export function createVirtMetrics(
  store: Store,
  options: {
    readonly clock: Clock;
    readonly version: string;
    /** Whether the controllers of this process work. */
    readonly controllersReady: () => boolean;
  },
): () => MetricFamily[] {
  const { clock, version, controllersReady } = options;
  const migrationTimes = createPhaseTimes();
  const vmiTimes = createVmiPhaseTimes();
  follow(store, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migrationTimes.observe);
  follow(store, VIRTUAL_MACHINE_INSTANCES, vmiTimes.observe);
  const all = <T extends KubeObject>(type: ResourceType<T>): T[] =>
    store.list(prefixOf(type)).items.map(({ object }) => object as unknown as T);
  const one = <T extends KubeObject>(type: ResourceType<T>, { namespace, name }: ObjectKey): T | undefined =>
    store.get({ prefix: prefixOf(type), namespace: type.namespaced ? namespace : '', name })?.object as unknown as T;

  return () => {
    const vms = all(VIRTUAL_MACHINES);
    const vmis = all(VIRTUAL_MACHINE_INSTANCES);
    const migrations = all(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
    const kubevirt = all(KUBEVIRTS)[0]?.spec?.configuration;
    const source = (field: Field, kind: string | undefined, { namespace = '', name = '' }: Named) => {
      const type = sourceType(field, kind);
      return type && (one<KubeObject>(type, { namespace, name }) as MetricSource | undefined);
    };
    const launchers = new Map(
      all(PODS)
        .filter(({ status }) => status?.phase === 'Running')
        .map(({ metadata, spec }) => [`${metadata.labels?.[CREATED_BY_LABEL]} ${spec.nodeName}`, metadata.name ?? '']),
    );
    return [
      gauge('kubevirt_info', 'Version information.', [{ labels: { kubeversion: `v${version}` }, value: 1 }]),
      flag('virt_api_ready_status', 'Indication for a virt-api server that is ready to serve requests.', true),
      flag(
        'virt_controller_ready_status',
        'Indication for a virt-controller that is ready to take the lead.',
        controllersReady(),
      ),
      flag('virt_controller_leading_status', 'Indication for an operating virt-controller.', controllersReady()),
      flag(
        'configuration_emulation_enabled',
        'Indicates whether the Software Emulation is enabled in the configuration.',
        kubevirt?.developerConfiguration?.useEmulation === true,
      ),
      ...vmMetrics(vms, {
        source: ({ metadata: { namespace }, spec }, field) =>
          source(field, spec[field]?.kind, { namespace, name: spec[field]?.name }),
        claim: (namespace, name) => one(PERSISTENT_VOLUME_CLAIMS, { namespace, name }),
      }),
      ...vmiMetrics(vmis, {
        source: ({ metadata }, { field, scope }) =>
          source(field, KINDS[field][scope], {
            namespace: metadata.namespace,
            name: metadata.annotations?.[SOURCE_ANNOTATIONS[field][scope]],
          }),
        podName: ({ metadata, status }) => launchers.get(`${metadata.uid} ${status?.nodeName}`) ?? '',
        evictionStrategy: kubevirt?.evictionStrategy,
      }),
      gauge(
        'kubevirt_vmsnapshot_succeeded_timestamp_seconds',
        'Returns the timestamp of successful virtual machine snapshot.',
        all(VIRTUAL_MACHINE_SNAPSHOTS)
          .slice(0, MAX_OBJECTS)
          .flatMap(({ metadata, spec, status }) =>
            status?.phase === 'Succeeded' && status.creationTime
              ? [
                  {
                    labels: {
                      name: spec.source.name,
                      snapshot_name: metadata.name ?? '',
                      namespace: metadata.namespace ?? '',
                    },
                    value: Date.parse(status.creationTime) / 1000,
                  },
                ]
              : [],
          ),
      ),
      ...evacuationMetrics(vmis, clock.now()),
      ...migrationMetrics(vmis, migrations),
      identityMetrics(vms, vmis),
      migrationTimes.family(),
      ...vmiTimes.families(),
    ];
  };
}

const flag = (name: string, help: string, value: boolean): MetricFamily =>
  gauge(`kubevirt_${name}`, help, [{ labels: {}, value: value ? 1 : 0 }]);

type Field = keyof typeof SOURCE_ANNOTATIONS;
type Named = Readonly<Record<'namespace' | 'name', string | undefined>>;
const KINDS = {
  instancetype: { namespaced: 'VirtualMachineInstancetype', cluster: 'VirtualMachineClusterInstancetype' },
  preference: { namespaced: 'VirtualMachinePreference', cluster: 'VirtualMachineClusterPreference' },
} as const;

/** Calls back with each change of an object of that type from now on. */
function follow<T extends KubeObject>(
  store: Store,
  type: ResourceType<T>,
  observe: (before: DeepReadonly<T> | undefined, after: DeepReadonly<T>) => void,
): void {
  const of = (stored: Change['current'] | undefined) => stored?.object as unknown as DeepReadonly<T> | undefined;
  store.watch(prefixOf(type), store.revision(), (changes) => {
    for (const { type: change, previous, current } of changes)
      if (change === 'MODIFIED') observe(of(previous), of(current) as DeepReadonly<T>);
  });
}
