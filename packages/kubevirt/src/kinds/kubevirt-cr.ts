/** KubeVirt: the one object that configures all of this. */

import type { Affinity, LabelSelector, LocalObjectReference, Toleration } from '@coracle/apimachinery/types/types';
import type { Static } from 'typebox';
import {
  atomicList,
  bool,
  builtin,
  count,
  duration,
  flag,
  float,
  int,
  keyedList,
  list,
  long,
  map,
  needed,
  object,
  oneOf,
  quantity,
  resourceList,
  str,
  stringMap,
  strings,
} from './fields.ts';
import { migrationConfiguration } from './migration-options.ts';
import { condition } from './status.ts';
import { EVICTION_STRATEGIES } from './vmi-spec.ts';

const selector = (description: string) =>
  builtin<LabelSelector>('io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector', description);
const nullable = { nullable: true };

const arch = (name: string) =>
  object(`Settings for ${name}.`, {
    ovmfPath: str('Directory of the UEFI images.'),
    emulatedMachines: atomicList(str('Pattern.'), 'Machine types that are allowed, as patterns.'),
    machineType: str('Machine type when a guest names none.'),
  });

const restClient = (component: string) =>
  object(`Rate limits of ${component}.`, {
    restClient: object('The API client.', {
      rateLimiter: object('Limiter.', {
        tokenBucketRateLimiter: object('Token bucket.', {
          qps: needed(float('Requests a second.')),
          burst: needed(int('Requests at once.')),
        }),
      }),
    }),
  });

const amounts = {
  limits: resourceList('Upper bounds.'),
  requests: resourceList('Reserved amounts.'),
};

const developerConfiguration = object('Settings for developers.', {
  featureGates: atomicList(str('Feature gate.'), 'Features switched on.'),
  disabledFeatureGates: atomicList(str('Feature gate.'), 'Features switched off.'),
  pvcTolerateLessSpaceUpToPercent: int('By how many percent a claim may be too small; 10 when absent.'),
  minimumReservePVCBytes: long('Bytes left unused on a claim; 131072 when absent.'),
  memoryOvercommit: int('Guest memory in percent of the launcher memory; 100 when absent.', { minimum: 10 }),
  nodeSelectors: stringMap('Labels a node for guests must have.'),
  useEmulation: bool('Runs guests without hardware acceleration.'),
  cpuAllocationRatio: int('Virtual processors for one processor; 10 when absent.'),
  minimumClusterTSCFrequency: long('Lowest TSC frequency.'),
  diskVerification: object('Check of container disks.', { memoryLimit: needed(quantity('Memory of the check.')) }),
  logVerbosity: object('How much the components log.', {
    virtAPI: count('virt-api.'),
    virtController: count('virt-controller.'),
    virtHandler: count('virt-handler.'),
    virtLauncher: count('virt-launcher.'),
    virtOperator: count('virt-operator.'),
    virtSynchronizationController: count('virt-synchronization-controller.'),
    nodeVerbosity: map(count('Level.'), 'By node.'),
  }),
  clusterProfiler: bool('Serves profiles.'),
});

const network = object('Network settings.', {
  defaultNetworkInterface: str('Binding of the interface that is added by default: bridge or masquerade.'),
  permitSlirpInterface: bool('No longer served.'),
  permitBridgeInterfaceOnPodNetwork: bool('Allows bridge on the pod network; on unless set to false.'),
  binding: map(
    object('A binding.', {
      sidecarImage: str('Image of the sidecar.'),
      networkAttachmentDefinition: str('NetworkAttachmentDefinition.'),
      domainAttachmentType: str('tap or managedTap.'),
      migration: object('Guests with it can migrate.', { method: str('link-refresh.') }),
      downwardAPI: str('device-info.'),
      computeResourceOverhead: object('Added to the launcher.', amounts),
    }),
    'Bindings by name.',
  ),
});

const mediatedDeviceTypes = {
  mediatedDevicesTypes: atomicList(str('Type.'), 'Deprecated: use mediatedDeviceTypes.'),
};

const configuration = object('Settings of the cluster.', {
  cpuModel: str('Processor model when a guest names none.'),
  cpuRequest: quantity('Processor request when a guest names none; 100m when absent.'),
  developerConfiguration,
  emulatedMachines: list(str('Pattern.'), 'Deprecated: use architectureConfiguration.'),
  imagePullPolicy: str('Pull policy of guest images.'),
  migrations: migrationConfiguration,
  machineType: str('Deprecated: use architectureConfiguration.'),
  network,
  ovmfPath: str('Deprecated: use architectureConfiguration.'),
  selinuxLauncherType: str('SELinux type of launchers.'),
  defaultRuntimeClass: str('Runtime class of launchers.'),
  smbios: object('SMBIOS data of guests.', {
    manufacturer: str('Manufacturer.'),
    product: str('Product.'),
    version: str('Version.'),
    sku: str('Stock keeping unit.'),
    family: str('Family.'),
  }),
  architectureConfiguration: object('Settings by architecture.', {
    amd64: arch('amd64'),
    arm64: arch('arm64'),
    ppc64le: arch('ppc64le, no longer served'),
    s390x: arch('s390x'),
    defaultArchitecture: str('Architecture when a guest names none.'),
  }),
  evictionStrategy: oneOf(EVICTION_STRATEGIES, 'Eviction strategy when a guest names none.'),
  additionalGuestMemoryOverheadRatio: str('Factor on the computed memory overhead.'),
  supportContainerResources: keyedList(
    object('Resources of one kind of container.', {
      type: needed(str('Kind of container.')),
      resources: needed(object('Amounts.', amounts)),
    }),
    ['type'],
    'Resources of the containers beside a guest.',
  ),
  supportedGuestAgentVersions: strings('Has no effect.'),
  memBalloonStatsPeriod: count('Seconds between balloon statistics.'),
  permittedHostDevices: object('Host devices guests may use.', {
    pciHostDevices: atomicList(
      object('A PCI device.', {
        pciVendorSelector: needed(str('vendor:product.')),
        resourceName: needed(str('Resource name.')),
        externalResourceProvider: bool('Another plug-in hands it out.'),
      }),
      'PCI devices.',
    ),
    mediatedDevices: atomicList(
      object('A mediated device.', {
        mdevNameSelector: needed(str('Type name.')),
        resourceName: needed(str('Resource name.')),
        externalResourceProvider: bool('Another plug-in hands it out.'),
      }),
      'Mediated devices.',
    ),
    usb: atomicList(
      object('USB devices.', {
        resourceName: needed(str('Resource name.')),
        selectors: atomicList(
          object('A device.', { vendor: needed(str('Vendor.')), product: needed(str('Product.')) }),
          'Devices.',
        ),
        externalResourceProvider: bool('Another plug-in hands them out.'),
      }),
      'USB devices.',
    ),
  }),
  mediatedDevicesConfiguration: object('Mediated devices to make.', {
    ...mediatedDeviceTypes,
    mediatedDeviceTypes: atomicList(str('Type.'), 'Types.'),
    nodeMediatedDeviceTypes: atomicList(
      object('Types on some nodes.', {
        nodeSelector: needed(stringMap('Labels of the nodes.')),
        ...mediatedDeviceTypes,
        mediatedDeviceTypes: needed(atomicList(str('Type.'), 'Types.')),
      }),
      'Types by node.',
    ),
    enabled: bool('On unless set to false.'),
  }),
  minCPUModel: str('Has no effect.'),
  obsoleteCPUModels: map(
    bool('True hides it, false offers one of the defaults again.'),
    'Processor models that no node offers.',
  ),
  virtualMachineInstancesPerNode: int('Guests a node.'),
  apiConfiguration: restClient('virt-api'),
  webhookConfiguration: restClient('the webhooks'),
  controllerConfiguration: restClient('virt-controller'),
  handlerConfiguration: restClient('virt-handler'),
  tlsConfiguration: object('TLS settings.', {
    minTLSVersion: oneOf(['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'], 'Lowest version.', {
      enforced: true,
    }),
    ciphers: strings('Ciphers.', { 'x-kubernetes-list-type': 'set' }),
  }),
  seccompConfiguration: object('Seccomp settings.', {
    virtualMachineInstanceProfile: object('Profile of launchers.', {
      customProfile: object('A given profile.', {
        localhostProfile: str('Path on the node.'),
        runtimeDefaultProfile: bool('The profile of the runtime.'),
      }),
    }),
  }),
  vmStateStorageClass: str('Storage class of persistent guest state.'),
  virtualMachineOptions: object('Settings of all guests.', {
    disableFreePageReporting: flag('No free page reporting.'),
    disableSerialConsoleLog: flag('No log of the serial console.'),
  }),
  ksmConfiguration: object('Kernel same-page merging.', { nodeLabelSelector: selector('Nodes it is on for.') }),
  autoCPULimitNamespaceLabelSelector: selector('Namespaces whose guests get a processor limit.'),
  liveUpdateConfiguration: object('Limits of live updates.', {
    maxHotplugRatio: count('Factor when no maximum is given; 4 when absent.'),
    maxCpuSockets: count('Most sockets.'),
    maxGuest: quantity('Most memory.'),
  }),
  vmRolloutStrategy: oneOf(['Stage', 'LiveUpdate'], 'How changes of a virtual machine reach its instance.', {
    enforced: true,
    nullable: true,
  }),
  commonInstancetypesDeployment: object(
    'The common instance types.',
    { enabled: bool('On unless false.', nullable) },
    nullable,
  ),
  virtTemplateDeployment: object(
    'Virtual machine templates.',
    { enabled: bool('On unless false.', nullable) },
    nullable,
  ),
  instancetype: object(
    'Instance types.',
    {
      referencePolicy: oneOf(['reference', 'expand', 'expandAll'], 'How a virtual machine keeps its instance type.', {
        enforced: true,
        nullable: true,
      }),
    },
    nullable,
  ),
  hypervisors: atomicList(
    object('A hypervisor.', { name: oneOf(['kvm', 'hyperv-direct'], 'Name.', { enforced: true }) }),
    'Hypervisors of the nodes.',
    { maxItems: 1 },
  ),
  changedBlockTrackingLabelSelectors: object(
    'Guests with changed-block tracking.',
    {
      namespaceLabelSelector: selector('By namespace.'),
      virtualMachineLabelSelector: selector('By virtual machine.'),
    },
    nullable,
  ),
  persistentReservationConfiguration: object(
    'SCSI persistent reservations.',
    { enabled: bool('Switches them on.', nullable) },
    nullable,
  ),
  confidentialCompute: object(
    'Confidential guests.',
    {
      tdx: object(
        'Intel TDX.',
        {
          attestation: object('Attestation.', {
            enforced: bool('Only nodes with a quote service.', { default: false }),
            qgsSocketPath: str('Socket of the quote service.', { default: '/var/run/tdx-qgs/qgs.socket' }),
          }),
        },
        nullable,
      ),
    },
    nullable,
  ),
  roleAggregationStrategy: oneOf(['AggregateToDefault', 'Manual'], 'Whether our roles join admin, edit and view.', {
    enforced: true,
  }),
});

const component = (name: string) =>
  object(`Placement of ${name}.`, {
    nodePlacement: object('Where pods may run.', {
      nodeSelector: stringMap('Labels a node must have.'),
      affinity: builtin<Affinity>('io.k8s.api.core.v1.Affinity', 'Affinity rules.'),
      tolerations: list(
        builtin<Toleration>('io.k8s.api.core.v1.Toleration', 'One toleration.'),
        'Taints that are tolerated.',
      ),
    }),
    replicas: count('Number of pods.'),
  });

const certificate = (name: string) =>
  object(`Lifetime of ${name}.`, { duration: duration('Lifetime.'), renewBefore: duration('Renewed so long before.') });

export const kubeVirtSpec = object('How KubeVirt is set up.', {
  imageTag: str('Tag of the component images.'),
  imageRegistry: str('Registry of the component images.'),
  imagePullPolicy: str('Pull policy of the component images.'),
  imagePullSecrets: atomicList(
    builtin<LocalObjectReference>('io.k8s.api.core.v1.LocalObjectReference', 'A Secret.'),
    'Registry credentials.',
  ),
  monitorNamespace: str('Namespace of the monitoring.'),
  serviceMonitorNamespace: str('Namespace of the service monitor.'),
  monitorAccount: str('Service account of the monitoring.'),
  workloadUpdateStrategy: object('How running guests follow an update.', {
    workloadUpdateMethods: atomicList(str('LiveMigrate or Evict.'), 'Allowed methods.'),
    batchEvictionSize: int('Evictions at a time; 10 when absent.'),
    batchEvictionInterval: duration('Time between batches; 1m when absent.'),
  }),
  uninstallStrategy: oneOf(['RemoveWorkloads', 'BlockUninstallIfWorkloadsExist'], 'What deletion does to guests.'),
  certificateRotateStrategy: object('Renewal of certificates.', {
    selfSigned: object('Certificates of our own authority.', {
      caRotateInterval: duration('Deprecated.'),
      certRotateInterval: duration('Deprecated.'),
      caOverlapInterval: duration('Deprecated.'),
      ca: certificate('the authority'),
      server: certificate('server certificates'),
    }),
  }),
  productVersion: str('Version of the product this is part of.'),
  productName: str('Name of the product this is part of.'),
  productComponent: str('Component of the product this is part of.'),
  synchronizationPort: str('Port of the synchronisation; 9185 when absent.'),
  configuration,
  infra: component('the control plane'),
  workloads: component('the node agents'),
  synchronizationPlacement: component('the synchronisation'),
  customizeComponents: object('Changes to the components.', {
    patches: atomicList(
      object('A patch.', {
        resourceName: needed(str('Name.', { minLength: 1 })),
        resourceType: needed(str('Kind.', { minLength: 1 })),
        patch: needed(str('The patch.')),
        type: needed(str('json, merge or strategic.')),
      }),
      'Patches.',
    ),
    flags: object('Command-line flags.', {
      api: stringMap('virt-api.'),
      controller: stringMap('virt-controller.'),
      handler: stringMap('virt-handler.'),
    }),
  }),
});

export const kubeVirtStatus = object('What is known of the deployment.', {
  phase: oneOf(['Deploying', 'Deployed', 'Deleting', 'Deleted'], 'Where it is.'),
  conditions: list(condition, 'Observed aspects.'),
  operatorVersion: str('Version of the operator.'),
  targetKubeVirtRegistry: str('Registry aimed at.'),
  targetKubeVirtVersion: str('Version aimed at.'),
  targetDeploymentConfig: str('Configuration aimed at.'),
  targetDeploymentID: str('Deployment aimed at.'),
  observedKubeVirtRegistry: str('Registry in use.'),
  observedKubeVirtVersion: str('Version in use.'),
  observedDeploymentConfig: str('Configuration in use.'),
  observedDeploymentID: str('Deployment in use.'),
  outdatedVirtualMachineInstanceWorkloads: int('Guests on an old version.'),
  observedGeneration: long('Generation in effect.'),
  defaultArchitecture: str('Architecture when a guest names none.'),
  generations: atomicList(
    object('Generation of one object.', {
      group: needed(str('Group.')),
      resource: needed(str('Resource.')),
      namespace: str('Namespace.'),
      name: needed(str('Name.')),
      lastGeneration: needed(long('Generation.')),
      hash: str('Hash.'),
    }),
    'Generations of the objects it made.',
  ),
  synchronizationAddresses: strings('Addresses of the synchronisation.', { 'x-kubernetes-list-type': 'atomic' }),
});

export type KubeVirtSpec = Static<typeof kubeVirtSpec>;
export type KubeVirtStatus = Static<typeof kubeVirtStatus>;
