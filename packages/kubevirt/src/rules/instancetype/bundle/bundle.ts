/** The bundle as objects, with the labels that people select by. */
import {
  INSTANCETYPE_GROUP,
  INSTANCETYPE_VERSION,
  type InstancetypeSpec,
  type PreferenceSpec,
  type VirtualMachineInstancetype,
  type VirtualMachinePreference,
} from '../../../kinds/kubevirt.ts';
import type { SourceKind } from '../matcher.ts';
import common from './common-instancetypes.json' with { type: 'json' };

interface Bundle {
  /** What the instance types of a series, `u1`, have in common. */
  readonly series: Readonly<Record<string, Readonly<Record<'displayName' | 'description' | 'class' | 'icon', string>>>>;
  readonly instancetypes: readonly { readonly name: string; readonly spec: InstancetypeSpec }[];
  readonly preferences: readonly Preference[];
}

interface Preference {
  readonly name: string;
  readonly displayName: string;
  readonly icon: string;
  readonly tags: readonly string[];
  readonly os: string;
  readonly spec: PreferenceSpec;
}

const BUNDLE = common as Bundle;

const API_VERSION = `${INSTANCETYPE_GROUP}/${INSTANCETYPE_VERSION}`;
const VENDOR = 'kubevirt.io';
const SERIES_VERSION = '1';

/** Under the group's prefix, without the absent ones. */
function prefixed(labels: Record<string, string | undefined>): Record<string, string> {
  const entries = Object.entries(labels).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries.map(([key, value]) => [`${INSTANCETYPE_GROUP}/${key}`, value]));
}

const flag = (value: unknown): string | undefined => (value ? 'true' : undefined);

function instancetypeObject(
  { name, spec }: Bundle['instancetypes'][number],
  namespace: string | undefined,
): VirtualMachineInstancetype {
  const { cpu, memory } = spec;
  const [series = '', size] = name.split('.');
  const of = BUNDLE.series[series]!;
  return {
    apiVersion: API_VERSION,
    kind: namespace === undefined ? 'VirtualMachineClusterInstancetype' : 'VirtualMachineInstancetype',
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      labels: prefixed({
        class: of.class,
        cpu: String(cpu.guest),
        memory: String(memory.guest),
        size,
        vendor: VENDOR,
        version: SERIES_VERSION,
        'icon-pf': of.icon,
        dedicatedCPUPlacement: flag(cpu.dedicatedCPUPlacement),
        isolateEmulatorThread: flag(cpu.isolateEmulatorThread),
        numa: flag(cpu.numa),
        realtime: flag(cpu.realtime),
        hugepages: memory.hugepages?.pageSize,
      }),
      annotations: prefixed({ displayName: of.displayName, description: of.description }),
    },
    spec: structuredClone(spec),
  };
}

function preferenceObject(of: Preference, namespace: string | undefined): VirtualMachinePreference {
  const { preferredArchitecture, requirements } = of.spec;
  return {
    apiVersion: API_VERSION,
    kind: namespace === undefined ? 'VirtualMachineClusterPreference' : 'VirtualMachinePreference',
    metadata: {
      name: of.name,
      ...(namespace !== undefined && { namespace }),
      labels: prefixed({
        'os-type': of.os,
        vendor: VENDOR,
        arch: preferredArchitecture,
        'preferred-architecture': preferredArchitecture,
        'required-architecture': requirements?.architecture,
        'required-cpu': requirements?.cpu && String(requirements.cpu.guest),
        'required-memory': requirements?.memory && String(requirements.memory.guest),
      }),
      annotations: {
        iconClass: of.icon,
        'openshift.io/display-name': of.displayName,
        tags: ['hidden', 'kubevirt', ...of.tags].join(),
      },
    },
    spec: structuredClone(of.spec),
  };
}

/**
 * The common instance types and preferences as fresh objects: cluster-wide, or of one namespace when it is given.
 * Names, specs and labels are those of kubevirt/common-instancetypes, but for the memory that Fedora requires.
 */
export function commonInstancetypes(namespace?: string): SourceKind[] {
  return [
    ...BUNDLE.instancetypes.map((of) => instancetypeObject(of, namespace)),
    ...BUNDLE.preferences.map((of) => preferenceObject(of, namespace)),
  ];
}
