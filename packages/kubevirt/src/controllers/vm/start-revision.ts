/**
 * The ControllerRevision taken at each start: it holds the VM spec the running instance was made from, so that a later
 * change to it is seen.
 */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, VirtualMachine, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { canonicalUuid } from '../../rules/identity/firmware-identity.ts';
import type { AnnotatedMeta } from '../../rules/instancetype/apply-instancetype.ts';
import { applyAtStart, type Layers } from '../../rules/instancetype/expand.ts';
import { withRevisionNames } from '../../rules/instancetype/revision-names.ts';
import { neutraliseInterfaces } from '../../rules/live-update/interface-changes.ts';
import { neutraliseLiveFields } from '../../rules/live-update/live-fields.ts';
import { neutraliseVolumes } from '../../rules/live-update/volume-changes.ts';
import type { ClusterConfig } from '../../rules/machine-defaults/cluster-config.ts';
import { setInstanceSpecDefaults } from '../../rules/machine-defaults/instance-defaults.ts';
import { isPciTopology } from './keep-pci-topology.ts';

type Spec = VirtualMachine['spec'];
type Template = Spec['template'];

/** Prefix of all start revisions of a VM; behind it stands the generation. */
export const startRevisionPrefix = (vm: ReadonlyVm): string => `revision-start-vm-${vm.metadata.uid}-`;

/**
 * The revision to create before an instance of this VM is made. Its matchers name the copies that are in force, so that
 * it says what runs without the VM's status.
 */
export function startRevision(vm: ReadonlyVm): ControllerRevision {
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `${startRevisionPrefix(vm)}${vm.metadata.generation ?? 0}`,
      namespace: vm.metadata.namespace ?? '',
      ownerReferences: [controllerReference(vm)],
    },
    data: { spec: withRevisionNames(vm) as unknown as Record<string, unknown> },
    revision: vm.metadata.generation ?? 0,
  };
}

/**
 * A spec that says the UUID the guest has: one without it was stored by an older server, and means that one. So only a
 * user's change of it is a difference.
 */
export function withGuestUuid(spec: DeepReadonly<Spec>, guestUuid: string | undefined): DeepReadonly<Spec> {
  const { template } = spec;
  const domain = template?.spec?.domain;
  if (!guestUuid || domain === undefined || domain.firmware?.uuid) return spec;
  const firmware = { ...domain.firmware, uuid: guestUuid };
  return { ...spec, template: { ...template, spec: { ...template.spec, domain: { ...domain, firmware } } } };
}

/** A spec and what its matchers stand for; `layers` is undefined when that is no longer known. */
export interface LayeredSpec {
  readonly spec: DeepReadonly<Spec>;
  readonly layers: Layers | undefined;
}

/**
 * True when the VM's template differs from the one its instance was started from. An instance type that stands for the
 * same amounts as the one before is no difference.
 */
export const differsFromStart = (started: LayeredSpec, current: LayeredSpec, config: ClusterConfig): boolean =>
  differs(started, current, config, 'nothing');

/**
 * True when a difference is one that only a restart can apply: not what the cluster updates while a guest runs, nor, as
 * upstream has it with any strategy, volumes and cards that are plugged and cables that are pulled.
 */
export const restartRequired = (
  started: LayeredSpec,
  current: LayeredSpec,
  config: ClusterConfig,
  running?: DeepReadonly<VirtualMachineInstanceSpec>,
): boolean => differs(started, current, config, config.liveUpdate ? 'live' : 'devices', running);

/** `running` is the instance, where what it has by now counts. */
function differs(
  started: LayeredSpec,
  current: LayeredSpec,
  config: ClusterConfig,
  ignores: 'nothing' | 'devices' | 'live',
  running?: DeepReadonly<VirtualMachineInstanceSpec>,
): boolean {
  const same = (before: Template, after: Template): boolean => {
    if (ignores !== 'nothing' && before?.spec && after?.spec) {
      neutraliseVolumes(before.spec, after.spec);
      neutraliseInterfaces(before.spec, after.spec, running);
    }
    if (ignores === 'live') neutraliseLiveFields(before, after);
    return deepEqual(before, after);
  };
  const hasMatchers = [started, current].some(({ spec }) => spec.instancetype != null || spec.preference != null);
  const sameTemplate = same(comparable(started.spec.template), comparable(current.spec.template));
  if (!hasMatchers) return !sameTemplate;
  if (sameTemplate && deepEqual(matchersOf(started.spec), matchersOf(current.spec))) return false;
  const [before, after] = [expandedSpec(started, config), expandedSpec(current, config)];
  return !before || !after || !same(comparable({ spec: before }), comparable({ spec: after }));
}

const matchersOf = ({ instancetype, preference }: DeepReadonly<Spec>): unknown => [
  instancetype ?? null,
  preference ?? null,
];

/**
 * The template's spec as it starts; undefined when it cannot.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function expandedSpec(
  { spec, layers }: LayeredSpec,
  config: ClusterConfig,
): VirtualMachineInstanceSpec | undefined {
  if (layers === undefined) return undefined;
  const result = cloneJson(spec.template?.spec ?? {}) as VirtualMachineInstanceSpec;
  const metadata = cloneJson<AnnotatedMeta>(spec.template?.metadata ?? {});
  const vm = { metadata: {}, spec } as ReadonlyVm;
  if (applyAtStart({ ...layers, vm, spec: result, metadata, config }).length > 0) return undefined;
  setInstanceSpecDefaults(result, config);
  return result;
}

/** A template without its metadata, whose UUID stands in one form. */
function comparable(of: DeepReadonly<Template> | undefined): Template {
  const template = cloneJson<Spec['template']>(of ?? {});
  const firmware = template.spec?.domain?.firmware;
  if (firmware) {
    if (firmware.uuid) firmware.uuid = canonicalUuid(firmware.uuid);
    else delete firmware.uuid;
    if (Object.keys(firmware).length === 0) delete template.spec?.domain?.firmware;
  }
  delete template.metadata;
  // A claim for dumps of the memory comes and goes while the guest runs.
  if (template.spec?.volumes)
    template.spec.volumes = template.spec.volumes.filter(({ memoryDump }) => memoryDump === undefined);
  dropEmptyLists(template);
  return template;
}

/** Whether two templates give an instance the same labels and annotations; those of the PCI layout come by themselves. */
export function sameTemplateMetadata(
  before: DeepReadonly<NonNullable<Template>['metadata']>,
  after: DeepReadonly<NonNullable<Template>['metadata']>,
): boolean {
  const own = (all: Readonly<Record<string, string>> | undefined): Record<string, string> =>
    Object.fromEntries(Object.entries(all ?? {}).filter(([name]) => !isPciTopology(name)));
  return (
    deepEqual(own(before?.labels), own(after?.labels)) && deepEqual(own(before?.annotations), own(after?.annotations))
  );
}

/** A list of nothing is as good as none (Semantic.DeepEqual): what is left where the last volume was taken out. */
function dropEmptyLists(value: object): void {
  for (const [name, member] of Object.entries(value) as [keyof typeof value, unknown][]) {
    if (typeof member !== 'object' || member === null) continue;
    if (Array.isArray(member) && member.length === 0) delete value[name];
    else dropEmptyLists(member);
  }
}
