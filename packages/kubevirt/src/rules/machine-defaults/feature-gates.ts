/** Feature gates and the state they are in: alpha is off unless named, beta is on unless disabled, ga cannot be switched. */

const STATES = {
  alpha: [
    'CPUManager',
    'ExperimentalIgnitionSupport',
    'HypervStrictCheck',
    'Sidecar',
    'HostDevices',
    'HostDisk',
    'DownwardMetrics',
    'Root',
    'WorkloadEncryptionTDX',
    'VSOCK',
    'AlignCPUs',
    'EnableVirtioFsStorageVolumes',
    'ObjectGraph',
    'UtilityVolumes',
    'IncrementalBackup',
    'ContainerPathVolumes',
    'ReservedOverheadMemlock',
    'PortRangesSpec',
    'NetworkDevicesWithDRA',
  ],
  beta: [
    'ImageVolume',
    'Snapshot',
    'WorkloadEncryptionSEV',
    'KubevirtSeccompProfile',
    'NodeRestriction',
    'GPUsWithDRA',
    'HostDevicesWithDRA',
    'DecentralizedLiveMigration',
    'DeclarativeHotplugVolumes',
    'PasstBinding',
    'PodSecondaryInterfaceNamingUpgrade',
    'ExternalNetResourceInjection',
    'RebootPolicy',
    'Template',
    'OptOutRoleAggregation',
  ],
  ga: [
    'LiveMigration',
    'NUMA',
    'GPU',
    'VMExport',
    'VMPersistentState',
    'VMLiveUpdateFeatures',
    'HotplugNICs',
    'VolumesUpdateStrategy',
    'VolumeMigration',
    'InstancetypeReferencePolicy',
    'PersistentReservation',
    'PanicDevices',
    'VideoConfig',
    'MigrationPriorityQueue',
    'CommonInstancetypesDeployment',
  ],
  deprecated: ['HotplugVolumes'],
  /** Ours: for those who run KubeVirt's functional tests. Off unless named. */
  developer: ['FunctionalTestHooks'],
} as const;

type States = typeof STATES;
export type FeatureGate = States[keyof States][number];

const stateOf = new Map<string, keyof States>(
  (Object.keys(STATES) as (keyof States)[]).flatMap((state) => STATES[state].map((gate) => [gate, state] as const)),
);

/** Whether a gate is on. Names that are in neither list follow the state of the gate. */
export function isGateEnabled(
  gate: FeatureGate,
  lists: { readonly enabled: readonly string[]; readonly disabled: readonly string[] },
): boolean {
  switch (stateOf.get(gate)) {
    case 'ga':
      return true;
    case 'beta':
      return !lists.disabled.includes(gate);
    default:
      return lists.enabled.includes(gate) && !lists.disabled.includes(gate);
  }
}
