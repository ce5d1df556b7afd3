import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeVirt, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../../../rules/machine-defaults/cluster-config.ts';
import { Findings } from './causes.ts';
import { isPortName } from './formats.ts';
import { validateArchitecture } from './validate-architecture.ts';
import { matchesPattern, validateHyperv } from './validate-firmware.ts';
import { validateInstanceSpec } from './validate-instance-spec.ts';
import { validateMemoryGiven } from './validate-resources.ts';
import { validateVolumeUse } from './validate-volumes.ts';

type Spec = VirtualMachineInstanceSpec;
type Domain = Partial<Spec['domain']>;
type Devices = Spec['domain']['devices'];
type Configuration = NonNullable<KubeVirt['spec']['configuration']>;

const configOf = (configuration: Configuration = {}) =>
  clusterConfigOf({ apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata: {}, spec: { configuration } });
const gates = (...featureGates: string[]): Configuration => ({ developerConfiguration: { featureGates } });

const domain = (more: Domain, spec: Partial<Spec> = {}): Spec => ({ ...spec, domain: { devices: {}, ...more } });
const devices = (more: Devices, spec: Partial<Spec> = {}): Spec => domain({ devices: more }, spec);
/** A spec whose disk is `disk` and has a volume. */
const disk = (more: Partial<NonNullable<Devices['disks']>[number]>, volume = {}): Spec =>
  devices({ disks: [{ name: 'd', ...more }] }, { volumes: [{ name: 'd', emptyDisk: { capacity: '1Gi' }, ...volume }] });
const volume = (source: object): Spec => domain({}, { volumes: [{ name: 'v', ...source }] });
const nic = (more: object, network: object = { pod: {} }): Spec =>
  devices({ interfaces: [{ name: 'n', ...more }] }, { networks: [{ name: 'n', ...network }] });
/** A network by resource claim, and another one beside it. */
const claimedNetwork = (claim: object, binding: object = { sriov: {} }, other?: object): Spec =>
  devices(
    { interfaces: [{ name: 'n', ...binding }, ...(other ? [{ name: 'o', sriov: {} }] : [])] },
    {
      networks: [
        { name: 'n', resourceClaim: { claimName: 'c', requestName: 'r', ...claim } },
        ...(other ? [{ name: 'o', ...other }] : []),
      ],
      resourceClaims: [{ name: 'c', resourceClaimName: 'c' }],
    },
  );
/** An encrypted guest that boots by UEFI. */
const encrypted = (launchSecurity: Domain['launchSecurity'], efi: object = { secureBoot: false }): Spec =>
  domain({
    ...(launchSecurity && { launchSecurity }),
    firmware: { bootloader: { efi } },
    features: 'secureBoot' in efi && efi.secureBoot ? { smm: {} } : {},
  });
/** What a rule finds in a spec. */
function causesOf<Rest extends unknown[]>(rule: (found: Findings, ...rest: Rest) => void, ...rest: Rest) {
  const found = new Findings('spec');
  rule(found, ...rest);
  return found.causes;
}
const D = 'spec.domain';
const DISK = `${D}.devices.disks[0]`;
const NIC = `${D}.devices.interfaces[0]`;

type Affinity = NonNullable<Spec['affinity']>;
type NodeTerms = NonNullable<
  NonNullable<Affinity['nodeAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>['nodeSelectorTerms'];
type PodTerm = NonNullable<
  NonNullable<Affinity['podAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>[number];
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const onNodes = (nodeSelectorTerms: NodeTerms): Spec =>
  domain({}, { affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } } } });
const nearPods = (term: PodTerm): Spec => domain({}, { affinity: { podAffinity: { [REQUIRED]: [term] } } });
const NODES = `spec.nodeAffinity.${REQUIRED}.nodeSelectorTerms`;
const PODS = `spec.podAffinity.${REQUIRED}`;

type Row = [name: string, spec: Spec, expected: string | undefined, configuration?: Configuration];

/** Each row: what is validated, and the `type field` of its only cause; undefined = accepted. */
const TABLES: Record<string, Row[]> = {
  tolerations: [
    ['a good one', domain({}, { tolerations: [{ key: 'a', operator: 'Exists' }] }), undefined],
    [
      'an unknown operator',
      domain({}, { tolerations: [{ key: 'a', operator: 'Like' as 'Exists' }] }),
      'FieldValueInvalid spec.tolerations[0].operator',
    ],
    [
      'an unknown effect',
      domain({}, { tolerations: [{ key: 'a', operator: 'Exists', effect: 'Stay' as 'NoExecute' }] }),
      'FieldValueInvalid spec.tolerations[0].effect',
    ],
  ],
  names: [
    ['a good host name', domain({}, { hostname: 'a-b' }), undefined],
    ['a bad host name', domain({}, { hostname: 'a_b' }), 'FieldValueInvalid spec.hostname'],
    ['a bad subdomain', domain({}, { subdomain: 'A.b' }), 'FieldValueInvalid spec.subdomain'],
    ['a bad service account', domain({}, { serviceAccountName: 'A' }), 'FieldValueInvalid spec.serviceAccountName'],
  ],
  'devices by claim': [
    ['a GPU by its resource', devices({ gpus: [{ name: 'g', deviceName: 'v/g' }] }), undefined],
    ['a GPU by neither', devices({ gpus: [{ name: 'g' }] }), `FieldValueInvalid ${D}.devices.gpus`],
    [
      'a GPU by both',
      devices({ gpus: [{ name: 'g', deviceName: 'v/g', claimName: 'c', requestName: 'r' }] }),
      `FieldValueInvalid ${D}.devices.gpus`,
    ],
    [
      'a GPU by a claim',
      devices(
        { gpus: [{ name: 'g', claimName: 'c', requestName: 'r' }] },
        { resourceClaims: [{ name: 'c', resourceClaimName: 'c' }] },
      ),
      undefined,
    ],
    [
      'a GPU by a claim that is not there',
      devices({ gpus: [{ name: 'g', claimName: 'c', requestName: 'r' }] }),
      'FieldValueInvalid spec.resourceClaims',
    ],
    [
      'a GPU by a claim, the gate closed',
      devices({ gpus: [{ name: 'g', claimName: 'c', requestName: 'r' }] }),
      `FieldValueInvalid ${D}.devices.gpus`,
      { developerConfiguration: { disabledFeatureGates: ['GPUsWithDRA'] } },
    ],
    ['a network, the gate closed', claimedNetwork({}), 'FieldValueInvalid spec.networks'],
    ['a network', claimedNetwork({}), undefined, gates('NetworkDevicesWithDRA')],
    [
      'a network without a request',
      claimedNetwork({ requestName: '' }),
      'FieldValueRequired spec.networks[0].resourceClaim.requestName',
      gates('NetworkDevicesWithDRA'),
    ],
    [
      'a network without a claim',
      claimedNetwork({ claimName: '' }),
      'FieldValueRequired spec.networks[0].resourceClaim.claimName',
      gates('NetworkDevicesWithDRA'),
    ],
    [
      'a network of a claim that is not there',
      claimedNetwork({ claimName: 'other' }),
      'FieldValueNotFound spec.networks[0].resourceClaim.claimName',
      gates('NetworkDevicesWithDRA'),
    ],
    [
      'a network on a bridge',
      claimedNetwork({}, { bridge: {} }),
      `FieldValueInvalid ${D}.devices.interfaces`,
      gates('NetworkDevicesWithDRA'),
    ],
    [
      'one claim for two networks',
      claimedNetwork({}, { sriov: {} }, { resourceClaim: { claimName: 'c', requestName: 'r' } }),
      'FieldValueDuplicate spec.networks[1]',
      gates('NetworkDevicesWithDRA'),
    ],
    [
      'a network beside Multus',
      claimedNetwork({}, { sriov: {} }, { multus: { networkName: 'm' } }),
      'FieldValueInvalid spec.networks',
      gates('NetworkDevicesWithDRA'),
    ],
  ],
  memory: [
    [
      'a negative request',
      domain({ resources: { requests: { memory: '-1' } } }),
      `FieldValueInvalid ${D}.resources.requests.memory`,
    ],
    [
      'a tiny request',
      domain({ resources: { requests: { memory: '10' } } }),
      `FieldValueInvalid ${D}.resources.requests.memory`,
    ],
    ['1M', domain({ resources: { requests: { memory: '1M' } } }), undefined],
    [
      'a negative limit',
      domain({ resources: { limits: { memory: '-1Gi' } } }),
      `FieldValueInvalid ${D}.resources.limits.memory`,
    ],
    [
      'a request above the limit',
      domain({ resources: { requests: { memory: '2Gi' }, limits: { memory: '1Gi' } } }),
      `FieldValueInvalid ${D}.resources.requests.memory`,
    ],
    [
      'a guest above the limit, staged',
      domain({ memory: { guest: '2Gi' }, resources: { limits: { memory: '1Gi' } } }),
      `FieldValueInvalid ${D}.memory.guest`,
      { vmRolloutStrategy: 'Stage' },
    ],
    [
      'a guest above the limit, live',
      domain({ memory: { guest: '2Gi' }, resources: { limits: { memory: '1Gi' } } }),
      undefined,
    ],
    [
      'a page size that is none',
      domain({ memory: { hugepages: { pageSize: 'big' } } }),
      `FieldValueInvalid ${D}.memory.hugepages.pageSize`,
    ],
    [
      'less than a page',
      domain({ memory: { guest: '512Mi', hugepages: { pageSize: '1Gi' } } }),
      `FieldValueInvalid ${D}.resources.requests.memory`,
    ],
    [
      'no multiple of a page',
      domain({ memory: { guest: '3Mi', hugepages: { pageSize: '2Mi' } } }),
      `FieldValueInvalid ${D}.resources.requests.memory`,
    ],
    ['whole pages', domain({ memory: { guest: '4Mi', hugepages: { pageSize: '2Mi' } } }), undefined],
    [
      'reserved overhead without its gate',
      domain({ memory: { reservedOverhead: {} } }),
      `FieldValueInvalid ${D}.memory.reservedOverhead`,
    ],
  ],
  processors: [
    [
      'a negative request',
      domain({ resources: { requests: { cpu: '-1' } } }),
      `FieldValueInvalid ${D}.resources.requests.cpu`,
    ],
    [
      'a negative limit',
      domain({ resources: { limits: { cpu: '-1' } } }),
      `FieldValueInvalid ${D}.resources.limits.cpu`,
    ],
    [
      'a request above the limit',
      domain({ resources: { requests: { cpu: 2 }, limits: { cpu: 1 } } }),
      `FieldValueInvalid ${D}.resources.requests.cpu`,
    ],
    ['too many sockets', domain({ cpu: { sockets: 3, maxSockets: 2 } }), `FieldValueInvalid ${D}.cpu.sockets`],
    [
      'an unknown policy',
      domain({ cpu: { features: [{ name: 'a' }, { name: 'b', policy: 'maybe' }] } }),
      `FieldValueNotSupported ${D}.cpu.features[1].policy`,
    ],
    [
      'an emulator thread without dedicated processors',
      domain({ cpu: { isolateEmulatorThread: true } }),
      `FieldValueInvalid ${D}.cpu.isolateEmulatorThread`,
    ],
    [
      'NUMA without huge pages',
      domain({
        cpu: { cores: 1, dedicatedCpuPlacement: true, numa: { guestMappingPassthrough: {} } },
        memory: { guest: '1Gi' },
      }),
      `FieldValueInvalid ${D}.cpu.numa.guestMappingPassthrough`,
    ],
    [
      'real time without NUMA',
      domain({ cpu: { cores: 1, dedicatedCpuPlacement: true, realtime: {} }, memory: { guest: '1Gi' } }),
      `FieldValueRequired ${D}.cpu.numa.guestMappingPassthrough`,
    ],
    [
      'dedicated without memory',
      domain({ cpu: { cores: 2, dedicatedCpuPlacement: true } }),
      `FieldValueInvalid ${D}.resources.limits.memory`,
    ],
    [
      'dedicated fractions',
      domain({
        cpu: { dedicatedCpuPlacement: true },
        memory: { guest: '1Gi' },
        resources: { requests: { cpu: '1500m' } },
      }),
      `FieldValueInvalid ${D}.resources.requests.cpu`,
    ],
    [
      'dedicated without a number',
      domain({ cpu: { dedicatedCpuPlacement: true }, memory: { guest: '1Gi' } }),
      `FieldValueInvalid ${D}.cpu.dedicatedCpuPlacement`,
    ],
    [
      'dedicated with contradicting numbers',
      domain({
        cpu: { cores: 2, dedicatedCpuPlacement: true },
        memory: { guest: '1Gi' },
        resources: { requests: { cpu: 3 } },
      }),
      `FieldValueInvalid ${D}.cpu.dedicatedCpuPlacement`,
    ],
    [
      'dedicated with many threads',
      domain({ cpu: { threads: 4, dedicatedCpuPlacement: true }, memory: { guest: '1Gi' } }),
      `FieldValueInvalid ${D}.cpu.dedicatedCpuPlacement`,
    ],
    [
      'dedicated threads on arm64',
      domain(
        { cpu: { cores: 1, threads: 2, dedicatedCpuPlacement: true }, memory: { guest: '1Gi' } },
        { architecture: 'arm64' },
      ),
      'FieldValueInvalid spec.architecture',
    ],
    [
      'dedicated and right',
      domain({ cpu: { cores: 2, dedicatedCpuPlacement: true }, memory: { guest: '1Gi' } }),
      undefined,
    ],
  ],
  machine: [
    ['an allowed type', domain({ machine: { type: 'pc-q35-8.2' } }), undefined],
    ['another type', domain({ machine: { type: 'pc-i440fx-2.10' } }), `FieldValueInvalid ${D}.machine.type`],
    ['a long serial', domain({ firmware: { serial: 'x'.repeat(257) } }), `FieldValueInvalid ${D}.firmware.serial`],
    ['a serial with blanks', domain({ firmware: { serial: 'a b' } }), `FieldValueInvalid ${D}.firmware.serial`],
    [
      'two boot loaders',
      domain({ firmware: { bootloader: { bios: {}, efi: { secureBoot: false } } } }),
      `FieldValueInvalid ${D}.firmware.bootloader`,
    ],
    ['secure boot without SMM', domain({ firmware: { bootloader: { efi: {} } } }), `FieldValueInvalid ${D}`],
    ['secure boot with SMM', domain({ firmware: { bootloader: { efi: {} } }, features: { smm: {} } }), undefined],
    [
      'kernel arguments alone',
      domain({ firmware: { kernelBoot: { kernelArgs: 'x' } } }),
      `FieldValueInvalid ${D}.firmware.kernelBoot.kernelArgs`,
    ],
    [
      'a kernel without an image',
      domain({ firmware: { kernelBoot: { container: { image: '', kernelPath: '/k' } } } }),
      `FieldValueRequired ${D}.firmware.kernelBoot.container.image`,
    ],
    [
      'an image without a kernel',
      domain({ firmware: { kernelBoot: { container: { image: 'x' } } } }),
      `FieldValueRequired ${D}.firmware.kernelBoot.container`,
    ],
    [
      'a relative kernel path',
      domain({ firmware: { kernelBoot: { container: { image: 'x', kernelPath: 'k' } } } }),
      `FieldValueInvalid ${D}.firmware.kernelBoot.container.kernelPath`,
    ],
    ['ACPI tables without a reference', domain({ firmware: { acpi: {} } }), `FieldValueInvalid ${D}.firmware.acpi`],
    [
      'ACPI tables from nowhere',
      domain({ firmware: { acpi: { slicNameRef: 'a' } } }),
      `FieldValueInvalid ${D}.firmware.acpi.slicNameRef`,
    ],
    [
      'ACPI tables from a secret',
      domain({ firmware: { acpi: { msdmNameRef: 'a' } } }, { volumes: [{ name: 'a', secret: { secretName: 's' } }] }),
      undefined,
    ],
    ['encryption by nothing', domain({ launchSecurity: {} }), 'FieldValueForbidden spec.launchSecurity'],
    ['two encryptions', encrypted({ sev: {}, snp: {} }), 'FieldValueForbidden spec.launchSecurity'],
    ['SEV', encrypted({ sev: {} }), undefined],
    ['SEV without UEFI', domain({ launchSecurity: { sev: {} } }), 'FieldValueInvalid spec.launchSecurity'],
    ['SEV with secure boot', encrypted({ sev: {} }, { secureBoot: true }), 'FieldValueInvalid spec.launchSecurity'],
    ['SEV with kept variables', encrypted({ sev: {} }, { secureBoot: false, persistent: true }), undefined],
    [
      'attestation of a running guest',
      encrypted({ sev: { attestation: {} } }),
      'FieldValueInvalid spec.launchSecurity',
    ],
    [
      'attestation of a paused guest',
      { ...encrypted({ sev: { attestation: {} } }), startStrategy: 'Paused' },
      undefined,
    ],
    [
      'SNP with kept variables',
      encrypted({ snp: {} }, { secureBoot: false, persistent: true }),
      'FieldValueInvalid spec.launchSecurity',
    ],
    ['an SNP policy in hex', encrypted({ snp: { policy: '0x30000' } }), undefined],
    ['an SNP policy in words', encrypted({ snp: { policy: 'strict' } }), 'FieldValueInvalid spec.launchSecurity'],
    ['half an SNP identity', encrypted({ snp: { authorKey: 'a' } }), 'FieldValueInvalid spec.launchSecurity.snp'],
    [
      'SNP hashes without a kernel',
      encrypted({ snp: { kernelHashes: 'on' } }),
      'FieldValueInvalid spec.launchSecurity.snp.kernelHashes',
    ],
    ['TDX with its gate', encrypted({ tdx: {} }), undefined, gates('WorkloadEncryptionTDX')],
    ['TDX without its gate', domain({ launchSecurity: { tdx: {} } }), 'FieldValueInvalid spec.launchSecurity'],
    [
      'a reboot policy with its gate off',
      domain({ rebootPolicy: 'Terminate' }),
      `FieldValueInvalid ${D}.rebootPolicy`,
      { developerConfiguration: { disabledFeatureGates: ['RebootPolicy'] } },
    ],
  ],
  strategies: [
    ['an unknown start', domain({}, { startStrategy: 'Later' as 'Paused' }), 'FieldValueInvalid spec.startStrategy'],
    [
      'a paused start with a probe',
      domain({}, { startStrategy: 'Paused', livenessProbe: { guestAgentPing: {} } }),
      'FieldValueInvalid spec.startStrategy',
    ],
    [
      'an unknown eviction',
      domain({}, { evictionStrategy: 'Run' as 'None' }),
      'FieldValueInvalid spec.evictionStrategy',
    ],
    ['an unknown I/O policy', domain({ ioThreadsPolicy: 'many' }), `FieldValueInvalid ${D}.ioThreadsPolicy`],
    [
      'a pool without a size',
      domain({ ioThreadsPolicy: 'supplementalPool' }),
      `FieldValueInvalid ${D}.ioThreads.count`,
    ],
    [
      'a pool',
      domain({ ioThreadsPolicy: 'supplementalPool', ioThreads: { supplementalPoolThreadCount: 2 } }),
      undefined,
    ],
  ],
  placement: [
    ['no affinity', domain({}, { affinity: {} }), undefined],
    [
      'a term that names a node and one that reads labels',
      onNodes([
        { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node01'] }] },
        { matchExpressions: [{ key: 'a/b', operator: 'Gt', values: ['1'] }] },
      ]),
      undefined,
    ],
    ['no term', onNodes([]), `FieldValueInvalid ${NODES}`],
    [
      'nothing to be in',
      onNodes([{ matchExpressions: [{ key: 'a', operator: 'In' }] }]),
      `FieldValueInvalid ${NODES}[0].matchExpressions[0].values`,
    ],
    [
      'values of what need only exist',
      onNodes([{ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }]),
      `FieldValueInvalid ${NODES}[0].matchExpressions[0].values`,
    ],
    [
      'two numbers to be below',
      onNodes([{ matchExpressions: [{ key: 'a', operator: 'Lt', values: ['1', '2'] }] }]),
      `FieldValueInvalid ${NODES}[0].matchExpressions[0].values`,
    ],
    [
      'a key that is no label',
      onNodes([{ matchExpressions: [{ key: '-a', operator: 'Exists' }] }]),
      `FieldValueInvalid ${NODES}[0].matchExpressions[0].key`,
    ],
    [
      'an unknown operator',
      onNodes([{ matchExpressions: [{ key: 'a', operator: 'Is' as 'In' }] }]),
      `FieldValueInvalid ${NODES}[0].matchExpressions[0].operator`,
    ],
    [
      'another field than the name',
      onNodes([{ matchFields: [{ key: 'metadata.uid', operator: 'In', values: ['a'] }] }]),
      `FieldValueInvalid ${NODES}[0].matchFields[0].key`,
    ],
    [
      'two names at once',
      onNodes([{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a', 'b'] }] }]),
      `FieldValueInvalid ${NODES}[0].matchFields[0].values`,
    ],
    [
      'a heavy preference for a node',
      domain(
        {},
        {
          affinity: {
            nodeAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [
                { weight: 101, preference: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } },
              ],
            },
          },
        },
      ),
      'FieldValueInvalid spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight',
    ],
    ['near others', nearPods({ topologyKey: 'kubernetes.io/hostname' }), undefined],
    [
      'near others in a namespace that cannot be',
      nearPods({ topologyKey: 'a', namespaces: ['A_b'] }),
      `FieldValueInvalid ${PODS}[0].namespace`,
    ],
    [
      'near others by a label that cannot be',
      nearPods({ topologyKey: 'a', labelSelector: { matchLabels: { a: '-' } } }),
      `FieldValueInvalid ${PODS}[0].labelSelector.matchLabels`,
    ],
    [
      'near others by nothing',
      nearPods({
        topologyKey: 'a',
        labelSelector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: [] }] },
      }),
      `FieldValueInvalid ${PODS}[0].labelSelector.matchExpressions[0].values`,
    ],
    [
      'spread evenly',
      domain(
        {},
        { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' }] },
      ),
      undefined,
    ],
    [
      'spread by no skew',
      domain(
        {},
        { topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }] },
      ),
      'FieldValueInvalid spec.topologySpreadConstraints[0].maxSkew',
    ],
    [
      'spread twice alike',
      domain(
        {},
        {
          topologySpreadConstraints: [1, 2].map((maxSkew) => ({
            maxSkew,
            topologyKey: 'zone',
            whenUnsatisfiable: 'DoNotSchedule',
          })),
        },
      ),
      'FieldValueInvalid spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}',
    ],
  ],
  probes: [
    [
      'another host',
      domain({}, { readinessProbe: { tcpSocket: { port: 1, host: '127.0.0.1' } } }),
      'FieldValueInvalid spec.readinessProbe.tcpSocket.host FieldValueInvalid spec.readinessProbe.tcpSocket',
    ],
    ['no handler', domain({}, { readinessProbe: {} }), 'FieldValueRequired spec.readinessProbe'],
    [
      'two handlers',
      domain({}, { livenessProbe: { guestAgentPing: {}, exec: { command: ['a'] } } }),
      'FieldValueInvalid spec.livenessProbe',
    ],
    [
      'TCP without the pod network',
      domain({}, { livenessProbe: { tcpSocket: { port: 1 } } }),
      'FieldValueInvalid spec.livenessProbe.tcpSocket',
    ],
  ],
  devices: [
    [
      'an input on a strange bus',
      devices({ inputs: [{ name: 'a', type: 'tablet', bus: 'ps2' }] }),
      `FieldValueInvalid ${D}.devices.inputs[0].bus`,
    ],
    [
      'a keyboard',
      devices({ inputs: [{ name: 'a', type: 'keyboard' }] }),
      `FieldValueInvalid ${D}.devices.inputs[0].type`,
    ],
    [
      'a strange sound card',
      devices({ sound: { name: 'a', model: 'sb16' } }),
      'FieldValueInvalid spec.domain.devices.sound',
    ],
    ['a sound card without a name', devices({ sound: { name: '' } }), 'FieldValueInvalid spec.domain.devices.sound'],
    [
      'host devices without their gate',
      devices({ hostDevices: [{ name: 'a', deviceName: 'b' }] }),
      'FieldValueInvalid spec.domain.devices.hostDevices',
    ],
    [
      'host devices with their gate',
      devices({ hostDevices: [{ name: 'a', deviceName: 'b' }] }),
      undefined,
      gates('HostDevices'),
    ],
    [
      'host devices by claim',
      devices(
        { hostDevices: [{ name: 'a', claimName: 'b', requestName: 'r' }] },
        { resourceClaims: [{ name: 'b', resourceClaimName: 'c' }] },
      ),
      undefined,
    ],
    ['VSOCK without its gate', devices({ autoattachVSOCK: true }), `FieldValueInvalid ${D}.devices.autoattachVSOCK`],
    ['metrics without their gate', devices({ downwardMetrics: {} }), `FieldValueInvalid ${D}.devices.downwardMetrics`],
    [
      'a video device without graphics',
      devices({ video: { type: 'vga' }, autoattachGraphicsDevice: false }),
      'FieldValueInvalid spec.domain.devices.video',
    ],
    [
      'two frame buffers',
      devices({ gpus: ['a', 'b'].map((name) => ({ name, deviceName: 'v/g', virtualGPUOptions: { display: {} } })) }),
      'FieldValueInvalid spec.domain.devices.gpus',
    ],
    [
      'an unknown panic device',
      devices({ panicDevices: [{ model: 'constructor' }] }),
      `FieldValueInvalid ${D}.devices.panicDevices[0].model`,
    ],
    [
      'a panic device on s390x',
      devices({ panicDevices: [{}] }, { architecture: 's390x' }),
      `FieldValueInvalid ${D}.devices.panicDevices`,
    ],
    [
      'a panic device of another architecture',
      devices({ panicDevices: [{ model: 'isa' }] }, { architecture: 'arm64' }),
      `FieldValueInvalid ${D}.devices.panicDevices[0].model`,
    ],
    [
      'a shared claim without its gate',
      devices(
        { filesystems: [{ name: 'v', virtiofs: {} }] },
        { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
      ),
      `FieldValueInvalid ${D}.devices.filesystems`,
    ],
    [
      'a shared ConfigMap',
      devices({ filesystems: [{ name: 'v', virtiofs: {} }] }, { volumes: [{ name: 'v', configMap: { name: 'c' } }] }),
      undefined,
    ],
  ],
  disks: [
    ['a plain one', disk({}), undefined],
    ['one without a volume', devices({ disks: [{ name: 'd' }] }), `FieldValueInvalid ${DISK}.name`],
    ['an empty drive', devices({ disks: [{ name: 'd', cdrom: {} }] }), undefined],
    [
      'an empty drive with the gate off',
      devices({ disks: [{ name: 'd', cdrom: {} }] }),
      `FieldValueInvalid ${DISK}.name`,
      { developerConfiguration: { disabledFeatureGates: ['DeclarativeHotplugVolumes'] } },
    ],
    [
      'a name that is no label',
      devices({ disks: [{ name: 'D' }] }, { volumes: [{ name: 'D', emptyDisk: { capacity: '1Gi' } }] }),
      `FieldValueInvalid ${DISK}.name`,
    ],
    [
      'two of one name',
      devices({ disks: [{ name: 'd' }, { name: 'd' }] }, { volumes: [{ name: 'd', emptyDisk: { capacity: 1 } }] }),
      `FieldValueInvalid ${D}.devices.disks[1].name`,
    ],
    ['two targets', disk({ disk: {}, cdrom: {} }), `FieldValueInvalid ${DISK}`],
    ['boot order 0', disk({ bootOrder: 0 }), `FieldValueInvalid ${DISK}.bootOrder`],
    [
      'a boot order given twice',
      devices(
        { disks: [{ name: 'd', bootOrder: 1 }], interfaces: [{ name: 'n', masquerade: {}, bootOrder: 1 }] },
        { volumes: [{ name: 'd', emptyDisk: { capacity: 1 } }], networks: [{ name: 'n', pod: {} }] },
      ),
      `FieldValueInvalid ${NIC}.bootOrder`,
    ],
    ['IDE', disk({ disk: { bus: 'ide' } }), `FieldValueInvalid ${DISK}.disk.bus`],
    ['an unknown bus', disk({ disk: { bus: 'nvme' } }), `FieldValueInvalid ${DISK}.disk.bus`],
    ['a drive on virtio', disk({ cdrom: { bus: 'virtio' } }), `FieldValueInvalid ${DISK}.cdrom.bus`],
    ['a read-only SATA disk', disk({ disk: { bus: 'sata', readonly: true } }), `FieldValueInvalid ${DISK}.disk.bus`],
    [
      'a PCI address on SATA',
      disk({ disk: { bus: 'sata', pciAddress: '0000:81:01.1' } }),
      `FieldValueInvalid ${DISK}.disk.pciAddress`,
    ],
    [
      'a malformed PCI address',
      disk({ disk: { bus: 'virtio', pciAddress: '81.1' } }),
      `FieldValueInvalid ${DISK}.disk.pciAddress`,
    ],
    ['a strange serial', disk({ serial: 'ä' }), `FieldValueInvalid ${DISK}.serial`],
    ['an unknown cache', disk({ cache: 'some' }), `FieldValueInvalid ${DISK}.cache`],
    ['an unknown I/O mode', disk({ io: 'io_uring' }), `FieldValueNotSupported ${DISK}.io`],
    ['an unknown error policy', disk({ errorPolicy: 'panic' }), `FieldValueInvalid ${DISK}.errorPolicy`],
    [
      'an I/O thread on SATA',
      disk({ disk: { bus: 'sata' }, dedicatedIOThread: true }),
      `FieldValueNotSupported ${DISK}`,
    ],
    [
      'small blocks',
      disk({ blockSize: { custom: { logical: 256, physical: 512 } } }),
      `FieldValueInvalid ${DISK}.blockSize.custom.logical`,
    ],
    [
      'large blocks',
      disk({ blockSize: { custom: { logical: 512, physical: 4194304 } } }),
      `FieldValueInvalid ${DISK}.blockSize.custom.physical`,
    ],
    [
      'odd blocks',
      disk({ blockSize: { custom: { logical: 512, physical: 1000 } } }),
      `FieldValueInvalid ${DISK}.blockSize.custom.physical`,
    ],
    [
      'logical above physical',
      disk({ blockSize: { custom: { logical: 1024, physical: 512 } } }),
      `FieldValueInvalid ${DISK}.blockSize.custom.logical`,
    ],
    [
      '4k on SATA',
      disk({ disk: { bus: 'sata' }, blockSize: { custom: { logical: 4096, physical: 4096 } } }),
      `FieldValueInvalid ${DISK}.blockSize.custom.logical`,
    ],
    [
      'a discard that is no multiple',
      disk({ blockSize: { custom: { logical: 512, physical: 512, discardGranularity: 700 } } }),
      `FieldValueInvalid ${DISK}.blockSize.custom.discardGranularity`,
    ],
    [
      'both block size modes',
      disk({ blockSize: { matchVolume: {}, custom: { logical: 512, physical: 512 } } }),
      `FieldValueInvalid ${DISK}.blockSize`,
    ],
    ['a LUN on an empty disk', disk({ lun: { bus: 'scsi' } }), `FieldValueInvalid ${DISK}.lun`],
    [
      'a LUN on a claim',
      disk({ lun: { bus: 'scsi' } }, { emptyDisk: undefined, persistentVolumeClaim: { claimName: 'c' } }),
      undefined,
    ],
    [
      'a reservation that is off',
      disk(
        { lun: { bus: 'scsi', reservation: true } },
        { emptyDisk: undefined, persistentVolumeClaim: { claimName: 'c' } },
      ),
      `FieldValueInvalid ${D}.devices.disks.luns.reservation`,
    ],
  ],
  volumes: [
    ['no source', volume({}), 'FieldValueInvalid spec.volumes[0]'],
    [
      'two sources',
      volume({ emptyDisk: { capacity: 1 }, configMap: { name: 'a' } }),
      'FieldValueInvalid spec.volumes[0]',
    ],
    [
      'two of one name',
      domain({}, { volumes: [1, 2].map(() => ({ name: 'v', emptyDisk: { capacity: 1 } })) }),
      'FieldValueInvalid spec.volumes[1].name',
    ],
    [
      'a DataVolume without a name',
      volume({ dataVolume: { name: '' } }),
      'FieldValueRequired spec.volumes[0].dataVolume.name',
    ],
    ['a ConfigMap without a name', volume({ configMap: {} }), 'FieldValueInvalid spec.volumes[0].configMap.name'],
    ['a Secret without a name', volume({ secret: {} }), 'FieldValueInvalid spec.volumes[0].secret.secretName'],
    [
      'a service account without a name',
      volume({ serviceAccount: {} }),
      'FieldValueInvalid spec.volumes[0].serviceAccount.serviceAccountName',
    ],
    [
      'two service accounts',
      domain({}, { volumes: ['a', 'b'].map((name) => ({ name, serviceAccount: { serviceAccountName: 's' } })) }),
      'FieldValueInvalid spec.volumes',
    ],
    ['empty cloud-init', volume({ cloudInitNoCloud: {} }), 'FieldValueInvalid spec.volumes[0].cloudInitNoCloud'],
    [
      'cloud-init twice',
      volume({ cloudInitNoCloud: { userData: 'a', secretRef: { name: 's' } } }),
      'FieldValueInvalid spec.volumes[0].cloudInitNoCloud',
    ],
    ['cloud-init of 2048 bytes', volume({ cloudInitNoCloud: { userData: 'x'.repeat(2048) } }), undefined],
    [
      'cloud-init of 2049 bytes',
      volume({ cloudInitConfigDrive: { userData: 'x'.repeat(2049) } }),
      'FieldValueInvalid spec.volumes[0].cloudInitConfigDrive',
    ],
    [
      'cloud-init that is no base64',
      volume({ cloudInitNoCloud: { userDataBase64: '*' } }),
      'FieldValueInvalid spec.volumes[0].cloudInitNoCloud.userDataBase64',
    ],
    [
      'cloud-init in base64 that is not padded',
      volume({ cloudInitNoCloud: { userDataBase64: 'YQ' } }),
      'FieldValueInvalid spec.volumes[0].cloudInitNoCloud.userDataBase64',
    ],
    [
      'large base64',
      volume({ cloudInitNoCloud: { networkDataBase64: btoa('x'.repeat(2049)) } }),
      'FieldValueInvalid spec.volumes[0].cloudInitNoCloud',
    ],
    [
      'a host disk without its gate',
      volume({ hostDisk: { path: '/a', type: 'Disk' } }),
      'FieldValueInvalid spec.volumes[0]',
    ],
    [
      'a host disk with a strange type',
      volume({ hostDisk: { path: '/a', type: 'File' } }),
      'FieldValueInvalid spec.volumes[0].hostDisk.type',
      gates('HostDisk'),
    ],
    [
      'a host disk without a path',
      volume({ hostDisk: { path: '', type: 'Disk' } }),
      'FieldValueNotFound spec.volumes[0].hostDisk.path',
      gates('HostDisk'),
    ],
    [
      'an existing host disk with a size',
      volume({ hostDisk: { path: '/a', type: 'Disk', capacity: '1Gi' } }),
      'FieldValueInvalid spec.volumes[0].hostDisk.capacity',
      gates('HostDisk'),
    ],
    [
      'a container disk at the root',
      volume({ containerDisk: { image: 'x', path: '/' } }),
      'FieldValueInvalid spec.volumes[0].containerDisk',
    ],
    [
      'a container disk above the root',
      volume({ containerDisk: { image: 'x', path: '/a/../b' } }),
      'FieldValueInvalid spec.volumes[0].containerDisk',
    ],
    ['a container disk at a path', volume({ containerDisk: { image: 'x', path: '/disk/a.img' } }), undefined],
  ],
  networks: [
    ['masquerade', nic({ masquerade: {} }), undefined],
    ['no source', nic({ masquerade: {} }, {}), `FieldValueRequired spec.networks[0] FieldValueInvalid ${NIC}.name`],
    [
      'two sources',
      nic({ bridge: {} }, { pod: {}, multus: { networkName: 'a' } }),
      'FieldValueRequired spec.networks[0]',
    ],
    [
      'Multus without a name',
      nic({ bridge: {} }, { multus: { networkName: '' } }),
      'FieldValueRequired spec.networks[0]',
    ],
    [
      'two pod networks',
      devices(
        { interfaces: ['a', 'b'].map((name) => ({ name, masquerade: {} })) },
        { networks: ['a', 'b'].map((name) => ({ name, pod: {} })) },
      ),
      'FieldValueDuplicate spec.interfaces',
    ],
    [
      'a network nobody joins',
      domain({}, { networks: [{ name: 'n', pod: {} }] }),
      'FieldValueRequired spec.networks[0].name',
    ],
    ['an interface to nowhere', devices({ interfaces: [{ name: 'n', bridge: {} }] }), `FieldValueInvalid ${NIC}.name`],
    [
      'one network twice',
      devices(
        { interfaces: [1, 2].map(() => ({ name: 'n', masquerade: {} })) },
        { networks: [{ name: 'n', pod: {} }] },
      ),
      `FieldValueDuplicate ${D}.devices.interfaces[1].name`,
    ],
    [
      'masquerade elsewhere',
      nic({ masquerade: {} }, { multus: { networkName: 'a' } }),
      `FieldValueInvalid ${NIC}.name`,
    ],
    ['two bindings', nic({ masquerade: {}, bridge: {} }), `FieldValueInvalid ${NIC}`],
    ['a removed binding', nic({ slirp: {} }), `FieldValueInvalid ${NIC}.slirp`],
    ['an unregistered binding', nic({ binding: { name: 'x' } }), `FieldValueInvalid ${NIC}.binding`],
    ['a registered binding', nic({ binding: { name: 'x' } }), undefined, { network: { binding: { x: {} } } }],
    [
      'bridge where it is forbidden',
      nic({ bridge: {} }),
      `FieldValueInvalid ${NIC}.name`,
      { network: { permitBridgeInterfaceOnPodNetwork: false } },
    ],
    [
      'the reserved address',
      nic({ masquerade: {}, macAddress: '02-00-00-00-00-00' }),
      `FieldValueInvalid ${NIC}.macAddress`,
    ],
    ['a malformed address', nic({ masquerade: {}, macAddress: 'de:ad' }), `FieldValueInvalid ${NIC}.macAddress`],
    ['an address in words', nic({ masquerade: {}, macAddress: 'dead.0000.beaf' }), undefined],
    [
      'an address of eight octets',
      nic({ masquerade: {}, macAddress: 'de-ad-00-00-be-af-be-af' }),
      `FieldValueInvalid ${NIC}.macAddress`,
    ],
    ['an unknown model', nic({ masquerade: {}, model: 'gem' }), `FieldValueNotSupported ${NIC}.model`],
    ['a malformed PCI address', nic({ masquerade: {}, pciAddress: 'x' }), `FieldValueInvalid ${NIC}.pciAddress`],
    ['an unknown state', nic({ masquerade: {}, state: 'off' }), `FieldValueInvalid ${NIC}.state`],
    ['link down', nic({ masquerade: {}, state: 'down' }), undefined],
    ['unplugging bridge', nic({ bridge: {}, state: 'absent' }, { multus: { networkName: 'a' } }), undefined],
    ['unplugging the pod network', nic({ bridge: {}, state: 'absent' }), `FieldValueInvalid ${NIC}.state`],
    ['an interface without a binding', nic({}), `FieldValueRequired ${NIC}`],
    ['a port without a number', nic({ masquerade: {}, ports: [{ port: 0 }] }), `FieldValueRequired ${NIC}.ports[0]`],
    [
      'a port out of range',
      nic({ masquerade: {}, ports: [{ port: 65536 }] }),
      `FieldValueInvalid ${NIC}.ports[0].port`,
    ],
    [
      'a port of another protocol',
      nic({ masquerade: {}, ports: [{ port: 1, protocol: 'SCTP' }] }),
      `FieldValueInvalid ${NIC}.ports[0].protocol`,
    ],
    [
      'a port name given twice',
      nic({
        masquerade: {},
        ports: [
          { name: 'a', port: 1 },
          { name: 'a', port: 2 },
        ],
      }),
      `FieldValueDuplicate ${NIC}.ports[1].name`,
    ],
    [
      'a port name that is none',
      nic({ masquerade: {}, ports: [{ name: '-', port: 1 }] }),
      `FieldValueInvalid ${NIC}.ports[0].name`,
    ],
    [
      'port ranges without their gate',
      nic({ masquerade: {}, portRanges: [{ protocol: 'TCP', start: 1, end: 2 }] }),
      `FieldValueInvalid ${NIC}.portRanges`,
    ],
    [
      'a range that runs back',
      nic({ masquerade: {}, portRanges: [{ protocol: 'TCP', start: 3, end: 2 }] }),
      `FieldValueInvalid ${NIC}.portRanges[0]`,
      gates('PortRangesSpec'),
    ],
    [
      'a private DHCP option out of range',
      nic({ masquerade: {}, dhcpOptions: { privateOptions: [{ option: 223, value: 'a' }] } }),
      'FieldValueInvalid spec',
    ],
    [
      'a private DHCP option twice',
      nic({ masquerade: {}, dhcpOptions: { privateOptions: [1, 2].map(() => ({ option: 240, value: 'a' })) } }),
      'FieldValueInvalid spec',
    ],
    [
      'a time server by name',
      nic({ masquerade: {}, dhcpOptions: { ntpServers: ['10.0.0.1', 'ntp'] } }),
      `FieldValueInvalid ${NIC}.dhcpOptions.ntpServers[1]`,
    ],
    ['octets that begin with zeros', nic({ masquerade: {}, dhcpOptions: { ntpServers: ['0127.0.0.03'] } }), undefined],
  ],
  dns: [
    ['an unknown policy', domain({}, { dnsPolicy: 'Any' }), 'FieldValueNotSupported spec.dnsPolicy'],
    ['None without settings', domain({}, { dnsPolicy: 'None' }), 'FieldValueRequired spec.dnsConfig'],
    ['None without servers', domain({}, { dnsPolicy: 'None', dnsConfig: {} }), 'FieldValueRequired nameservers'],
    [
      'four servers',
      domain({}, { dnsConfig: { nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4'] } }),
      'FieldValueInvalid nameservers',
    ],
    ['a server by name', domain({}, { dnsConfig: { nameservers: ['dns'] } }), 'FieldValueInvalid nameservers'],
    ['octets that begin with zeros', domain({}, { dnsConfig: { nameservers: ['01.1.1.1', 'fd00::1'] } }), undefined],
    [
      'seven searches',
      domain({}, { dnsConfig: { searches: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] } }),
      'FieldValueInvalid searchDomains',
    ],
    ['an option without a name', domain({}, { dnsConfig: { options: [{ value: '1' }] } }), 'FieldValueInvalid options'],
  ],
  credentials: [
    ['neither kind', domain({}, { accessCredentials: [{}] }), 'FieldValueInvalid spec.accessCredentials[0]'],
    [
      'keys without a volume',
      domain(
        {},
        {
          accessCredentials: [
            { sshPublicKey: { source: { secret: { secretName: 's' } }, propagationMethod: { noCloud: {} } } },
          ],
        },
      ),
      'FieldValueInvalid spec.accessCredentials[0].sshPublicKey.propagationMethod',
    ],
    [
      'keys without users',
      domain(
        {},
        {
          accessCredentials: [
            {
              sshPublicKey: {
                source: { secret: { secretName: 's' } },
                propagationMethod: { qemuGuestAgent: { users: [] } },
              },
            },
          ],
        },
      ),
      'FieldValueInvalid spec.accessCredentials[0].sshPublicKey.propagationMethod.qemuGuestAgent.users',
    ],
    [
      'keys without a source',
      domain(
        {},
        {
          accessCredentials: [
            { sshPublicKey: { source: {}, propagationMethod: { qemuGuestAgent: { users: ['a'] } } } },
          ],
        },
      ),
      'FieldValueInvalid spec.accessCredentials[0].sshPublicKey.source',
    ],
    [
      'passwords without a way',
      domain(
        {},
        { accessCredentials: [{ userPassword: { source: { secret: { secretName: 's' } }, propagationMethod: {} } }] },
      ),
      'FieldValueInvalid spec.accessCredentials[0].userPassword.propagationMethod',
    ],
  ],
};

for (const [topic, rows] of Object.entries(TABLES)) {
  // S-181: Rules about placement, presets, migration policies and the architecture of disk images are upstream's.
  // S-438: Interfaces without a binding, unknown operators of tolerations and a `maxGuest` below 1 GiB are refused, and
  //   causes name the field itself.
  // S-804: GPUs, host devices and networks by resource claim are held to upstream's rules: a device names its resource
  //   or a claim of the spec, a network is an SR-IOV interface of its own claim.
  describe(`rules about ${topic}`, () => {
    for (const [name, spec, expected, configuration] of rows) {
      // S-049
      it(`${expected === undefined ? 'accept' : 'refuse'} ${name}`, () => {
        const plain = JSON.parse(JSON.stringify(spec)) as Spec;
        const causes = causesOf(validateInstanceSpec, plain, configOf(configuration));
        assert.equal(causes.map(({ type, field }) => `${type} ${field}`).join(' '), expected ?? '');
        for (const { detail } of causes) assert.ok(detail.length > 10, 'says what is wrong');
      });
    }
  });
}

describe('rules about instances alone', () => {
  it('want memory from somewhere', () => {
    assert.deepEqual(
      causesOf(validateMemoryGiven, domain({})).map(({ type, field }) => [type, field]),
      [['FieldValueRequired', '']],
    );
    for (const more of [
      { memory: { guest: '1Gi' } },
      { memory: { hugepages: {} } },
      { resources: { requests: { memory: 1 } } },
    ]) {
      assert.deepEqual(causesOf(validateMemoryGiven, domain(more)), []);
    }
  });
  it('want what Hyper-V features need', () => {
    const spec = domain({ features: { hyperv: { ipi: {}, tlbflush: { enabled: false } } } });
    assert.deepEqual(
      causesOf(validateHyperv, spec).map(({ field }) => field),
      [`${D}.features.hyperv.ipi`],
    );
  });
  it('want every volume used', () => {
    const spec = domain(
      {},
      {
        volumes: [
          { name: 'v', emptyDisk: { capacity: 1 } },
          { name: 'm', memoryDump: { claimName: 'c' } },
        ],
      },
    );
    assert.deepEqual(
      causesOf(validateVolumeUse, spec).map(({ field }) => field),
      ['spec.domain.volumes[0].name'],
    );
  });
  const rows: [name: string, spec: Spec, expected: string[]][] = [
    ['an unknown architecture', domain({}, { architecture: 'riscv64' }), ['spec.architecture']],
    ['arm64 with threads', domain({ cpu: { threads: 2 } }, { architecture: 'arm64' }), []],
    [
      'arm64 with UEFI that says nothing of secure boot',
      domain({ firmware: { bootloader: { efi: {} } } }, { architecture: 'arm64' }),
      [`${D}.firmware.bootloader.efi.secureboot`],
    ],
    [
      'arm64 with a named processor',
      domain({ cpu: { model: 'Haswell' } }, { architecture: 'arm64' }),
      [`${D}.cpu.model`],
    ],
    [
      'arm64 with a watchdog, sound and a VGA card',
      devices(
        { watchdog: { name: 'w', i6300esb: {} }, sound: { name: 's' }, video: { type: 'vga' } },
        { architecture: 'arm64' },
      ),
      [`${D}.devices.watchdog`, `${D}.devices.sound`, `${D}.devices.video.type`],
    ],
    [
      'arm64 with buses',
      devices(
        {
          disks: [
            { name: 'a', disk: { bus: 'virtio' } },
            { name: 'b', cdrom: { bus: 'usb' } },
            { name: 'c', lun: { bus: 'scsi' } },
          ],
        },
        { architecture: 'arm64' },
      ),
      [`${D}.devices.disks[1].cdrom.bus`],
    ],
    ['s390x with virtio graphics', devices({ video: { type: 'virtio' } }, { architecture: 's390x' }), []],
    [
      's390x with a frame buffer',
      devices({ video: { type: 'ramfb' } }, { architecture: 's390x' }),
      [`${D}.devices.video.type`],
    ],
    [
      's390x with the watchdog of a PC',
      devices({ watchdog: { name: 'w', i6300esb: {} } }, { architecture: 's390x' }),
      [`${D}.devices.watchdog`],
    ],
    ['amd64 with bochs', devices({ video: { type: 'bochs' } }, { architecture: 'amd64' }), []],
    ['amd64 with qxl', devices({ video: { type: 'qxl' } }, { architecture: 'amd64' }), [`${D}.devices.video.type`]],
    [
      'amd64 with two watchdogs',
      devices({ watchdog: { name: 'w', i6300esb: {}, diag288: {} } }, { architecture: 'amd64' }),
      [`${D}.devices.watchdog`],
    ],
    [
      'arm64 with BIOS',
      domain({ firmware: { bootloader: { bios: {} } } }, { architecture: 'arm64' }),
      [`${D}.firmware.bootloader.bios`],
    ],
    [
      'arm64 with SATA',
      devices({ disks: [{ name: 'd', disk: { bus: 'sata' } }] }, { architecture: 'arm64' }),
      [`${DISK}.disk.bus`],
    ],
    [
      'amd64 with the s390x watchdog',
      devices({ watchdog: { name: 'w', diag288: {} } }, { architecture: 'amd64' }),
      [`${D}.devices.watchdog`],
    ],
    ['amd64', domain({}, { architecture: 'amd64' }), []],
  ];
  for (const [name, spec, expected] of rows) {
    it(`validates ${name}`, () =>
      assert.deepEqual(
        causesOf(validateArchitecture, spec).map(({ field }) => field),
        expected,
      ));
  }
});

describe('formats', () => {
  it('tells service names', () => {
    for (const good of ['http', 'a1', '1a', 'a-b']) assert.ok(isPortName(good), good);
    for (const bad of ['', '123', '-a', 'a-', 'a--b', 'A', 'abcdefghijklmnop']) assert.ok(!isPortName(bad), bad);
  });
  it('matches shell patterns', () => {
    assert.ok(matchesPattern('pc-q35*', 'pc-q35-8.2'));
    assert.ok(!matchesPattern('q35*', 'pc-q35'));
    assert.ok(matchesPattern('a.?', 'a.b'));
    assert.ok(!matchesPattern('a.?', 'axb'));
  });
});
