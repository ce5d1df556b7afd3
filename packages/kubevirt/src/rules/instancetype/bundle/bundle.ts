/** The bundle as objects, with the labels that people select by. */
import {
  INSTANCETYPE_GROUP,
  INSTANCETYPE_VERSION,
  type VirtualMachineInstancetype,
  type VirtualMachinePreference,
} from '../../../kinds/kubevirt.ts';
import type { SourceKind } from '../matcher.ts';
import { type BundledInstancetype, bundledInstancetypes } from './instancetypes.ts';
import { type BundledPreference, bundledPreferences } from './preferences.ts';

const API_VERSION = `${INSTANCETYPE_GROUP}/${INSTANCETYPE_VERSION}`;
const VENDOR = 'kubevirt.io';
const SERIES_VERSION = '1';

type Labels = Record<string, string | undefined>;

/** Under the group's prefix, without the absent ones. */
function prefixed(labels: Labels): Record<string, string> {
  const entries = Object.entries(labels).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries.map(([key, value]) => [`${INSTANCETYPE_GROUP}/${key}`, value]));
}

const flag = (value: unknown): string | undefined => (value ? 'true' : undefined);

function instancetypeObject(of: BundledInstancetype, namespace: string | undefined): VirtualMachineInstancetype {
  const { cpu, memory } = of.spec;
  return {
    apiVersion: API_VERSION,
    kind: namespace === undefined ? 'VirtualMachineClusterInstancetype' : 'VirtualMachineInstancetype',
    metadata: {
      name: of.name,
      ...(namespace !== undefined && { namespace }),
      labels: prefixed({
        class: of.class,
        cpu: String(cpu.guest),
        memory: String(memory.guest),
        size: of.size,
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
    spec: of.spec,
  };
}

function preferenceObject(of: BundledPreference, namespace: string | undefined): VirtualMachinePreference {
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
    spec: of.spec,
  };
}

/**
 * The common instance types and preferences as fresh objects: cluster-wide, or of one namespace when it is given.
 * Names, specs and labels are those of kubevirt/common-instancetypes, but for the memory that Fedora requires.
 */
export function commonInstancetypes(namespace?: string): SourceKind[] {
  return [
    ...bundledInstancetypes().map((of) => instancetypeObject(of, namespace)),
    ...bundledPreferences().map((of) => preferenceObject(of, namespace)),
  ];
}
