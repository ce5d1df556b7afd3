/**
 * Every field of an instance's spec: what a guest here gets, and what the API takes and no guest gets, with the reason.
 * Whoever asks for one of these hears of it at once, by a warning of the API, an event of the machine, of its set or pool, and
 * one of its instance. (A test walks the schema: a field that is added needs its place here.)
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { refusalOf } from './interfaces.ts';

/** A field that is accepted and not followed: where it stands below the spec, and what happens instead. */
export interface UnservedField {
  readonly field: string;
  readonly text: string;
}

const PROBES_ASK_THE_GUEST = 'probes ask the guest itself; their host has no effect';
/** By the path within the spec; `[]` stands for each entry of a list. What lies below such a path is not looked at. */
export const UNSERVED: Readonly<Record<string, string>> = {
  'domain.launchSecurity': 'encrypted guests (launchSecurity) are not supported',
  'domain.memory.hugepages': 'huge pages are not supported; ordinary memory is used',
  'domain.cpu.dedicatedCpuPlacement':
    'dedicated processors are not supported; the machine waits for a node with label kubevirt.io/cpumanager',
  'domain.cpu.numa': 'NUMA layouts are not supported',
  'domain.cpu.realtime': 'real-time processors are not supported',
  'domain.cpu.isolateEmulatorThread': 'isolateEmulatorThread has no effect on this node',
  'domain.memory.reservedOverhead.memLock': 'memory of guests is not locked; memLock has no effect',
  'domain.firmware.acpi': 'extra ACPI tables (firmware.acpi) are not supported',
  'domain.features.hyperv.tlbflush.direct': 'hyperv.tlbflush.direct has no effect on this node',
  'domain.features.hyperv.tlbflush.extended': 'hyperv.tlbflush.extended has no effect on this node',
  'domain.clock.timer.hpet.tickPolicy': 'clock.timer.hpet.tickPolicy has no effect on this node',
  'domain.ioThreads': 'a supplemental pool of I/O threads is not supported',
  'domain.devices.useVirtioTransitional': 'transitional virtio devices are not supported; guests get modern ones',
  'domain.devices.autoattachVSOCK': 'VSOCK is not supported',
  'domain.devices.blockMultiQueue': 'blockMultiQueue has no effect on this node',
  'domain.devices.downwardMetrics': 'downward metrics are not supported',
  'domain.devices.clientPassthrough': 'USB redirection is not supported',
  'domain.devices.gpus': 'GPUs of the host are not supported',
  'domain.devices.hostDevices': 'devices of the host are not supported',
  'domain.devices.filesystems': 'shared file systems (virtiofs) are not supported',
  'domain.devices.watchdog.diag288': 'watchdog diag288 exists on s390x only; it is left out',
  'domain.devices.networkInterfaceMultiqueue': 'networkInterfaceMultiqueue has no effect on this node',
  'domain.devices.interfaces[].portRanges': 'portRanges are not forwarded',
  'domain.devices.interfaces[].pciAddress': 'pciAddress is not supported',
  'domain.devices.interfaces[].acpiIndex': 'acpiIndex is not supported',
  'networks[].pod.vmIPv6NetworkCIDR': 'guests have IPv4 addresses only',
  'dnsConfig.options': 'dnsConfig.options are not passed on by DHCP',
  'domain.devices.disks[].lun': 'lun is not supported; it is attached as a disk',
  'domain.devices.disks[].disk.pciAddress': 'pciAddress is not supported',
  'domain.devices.disks[].blockSize.matchVolume': 'the block size of the volume is not used; it is 512 bytes',
  'domain.devices.disks[].changedBlockTracking': 'changed block tracking is not supported',
  'volumes[].memoryDump':
    'a claim receives a dump when one is requested (virtctl memory-dump), and is not a disk of the guest',
  'livenessProbe.httpGet.host': PROBES_ASK_THE_GUEST,
  'livenessProbe.tcpSocket.host': PROBES_ASK_THE_GUEST,
  'readinessProbe.httpGet.host': PROBES_ASK_THE_GUEST,
  'readinessProbe.tcpSocket.host': PROBES_ASK_THE_GUEST,
  resourceClaims: 'resource claims are not supported',
  utilityVolumes: 'utility volumes are not attached; memory dumps and backups name their claims themselves',
};

/** Of a machine, what `updateVolumesStrategy: Migration` comes to. */
export const NO_VOLUME_MIGRATION =
  'updateVolumesStrategy Migration: volumes of a running machine are not moved into others; what its template names is what it has from its next start on';

/** Kinds of volumes that are refused at admission, whatever the feature gates say. */
export const REFUSED_VOLUMES: Readonly<Record<string, string>> = {
  downwardMetrics: 'metrics of the host are not shown to guests here',
  containerPath: 'launchers here have no files that a guest could share',
};

/** Bindings that are refused at admission. */
const REFUSED_BINDINGS = 'slirp macvtap passt';
/** Bindings that no guest has; what `refusalOf` says of an interface is said with the interface left out. */
const LEFT_OUT_BINDINGS = 'sriov';

/** Networks that no guest is on, of which the same is said. */
const LEFT_OUT_NETWORKS = 'multus.default resourceClaim.*';
const SERVED_PROBE =
  'exec.* guestAgentPing httpGet.httpHeaders[].* httpGet.path httpGet.port httpGet.scheme tcpSocket.port initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold';

/** By the path of the object, the names of its fields: what guests here get, or what admission refuses; `*` stands for all of them. */
export const SERVED: Readonly<Record<string, string>> = {
  '': 'affinity.* architecture dnsPolicy evictionStrategy hostname nodeSelector priorityClassName schedulerName serviceAccountName startStrategy subdomain terminationGracePeriodSeconds tolerations[].* topologySpreadConstraints[].*',
  livenessProbe: SERVED_PROBE,
  readinessProbe: SERVED_PROBE,
  domain: 'chassis.* ioThreadsPolicy machine.type rebootPolicy',
  'domain.resources': 'requests limits overcommitGuestOverhead',
  'domain.cpu': 'cores sockets maxSockets threads model features[].*',
  'domain.memory': 'guest maxGuest reservedOverhead.addedOverhead',
  'domain.firmware':
    'uuid serial bootloader.bios.useSerial bootloader.efi.secureBoot bootloader.efi.persistent kernelBoot.kernelArgs kernelBoot.container.*',
  'domain.clock': 'timezone utc.offsetSeconds',
  'domain.clock.timer':
    'hpet.present kvm.present pit.tickPolicy pit.present rtc.tickPolicy rtc.track rtc.present hyperv.present',
  'domain.features':
    'acpi.enabled apic.enabled apic.endOfInterrupt hypervPassthrough.enabled smm.enabled kvm.hidden pvspinlock.enabled',
  'domain.features.hyperv':
    'relaxed.enabled vapic.enabled spinlocks.enabled spinlocks.spinlocks vpindex.enabled runtime.enabled synic.enabled synictimer.enabled synictimer.direct.enabled reset.enabled vendorid.enabled vendorid.vendorid frequencies.enabled reenlightenment.enabled tlbflush.enabled ipi.enabled evmcs.enabled',
  'networks[]': `name pod.vmNetworkCIDR multus.networkName ${LEFT_OUT_NETWORKS}`,
  dnsConfig: 'nameservers searches',
  'accessCredentials[]': 'sshPublicKey.* userPassword.*',
  'domain.devices':
    'disableHotplug autoattachPodInterface autoattachGraphicsDevice autoattachSerialConsole logSerialConsole autoattachMemBalloon autoattachInputDevice rng',
  'domain.devices.disks[]': 'name bootOrder serial dedicatedIOThread cache io tag shareable errorPolicy',
  'domain.devices.disks[].disk': 'bus readonly',
  'domain.devices.disks[].cdrom': 'bus readonly tray',
  'domain.devices.disks[].blockSize.custom': 'logical physical discardGranularity',
  'domain.devices.watchdog': 'name',
  'domain.devices.watchdog.i6300esb': 'action',
  'domain.devices.interfaces[]': `name model bridge masquerade passtBinding macAddress bootOrder tag state ${REFUSED_BINDINGS} ${LEFT_OUT_BINDINGS}`,
  'domain.devices.interfaces[].ports[]': 'name protocol port',
  'domain.devices.interfaces[].binding': 'name',
  'domain.devices.interfaces[].dhcpOptions': 'bootFileName tftpServerName ntpServers privateOptions[].*',
  'domain.devices.inputs[]': 'bus type name',
  'domain.devices.panicDevices[]': 'model',
  'domain.devices.sound': 'name model',
  'domain.devices.tpm': 'enabled persistent',
  'domain.devices.video': 'type',
  'volumes[]': 'name',
  'volumes[].hostDisk': 'path type capacity shared',
  'volumes[].persistentVolumeClaim': 'claimName readOnly hotpluggable',
  'volumes[].cloudInitNoCloud': 'userDataBase64 userData networkDataBase64 networkData',
  'volumes[].cloudInitNoCloud.secretRef': 'name',
  'volumes[].cloudInitNoCloud.networkDataSecretRef': 'name',
  'volumes[].cloudInitConfigDrive': 'userDataBase64 userData networkDataBase64 networkData',
  'volumes[].cloudInitConfigDrive.secretRef': 'name',
  'volumes[].cloudInitConfigDrive.networkDataSecretRef': 'name',
  'volumes[].sysprep.secret': 'name',
  'volumes[].sysprep.configMap': 'name',
  'volumes[].containerDisk': 'image imagePullSecret path imagePullPolicy',
  'volumes[].ephemeral.persistentVolumeClaim': 'claimName readOnly',
  'volumes[].emptyDisk': 'capacity',
  'volumes[].dataVolume': 'name hotpluggable',
  'volumes[].configMap': 'name optional volumeLabel',
  'volumes[].secret': 'secretName optional volumeLabel',
  'volumes[].downwardAPI': 'volumeLabel',
  'volumes[].downwardAPI.fields[]': 'mode path',
  'volumes[].downwardAPI.fields[].fieldRef': 'apiVersion fieldPath',
  'volumes[].downwardAPI.fields[].resourceFieldRef': 'containerName divisor resource',
  'volumes[].serviceAccount': 'serviceAccountName',
};

const NAMED: Readonly<Record<string, string>> = {
  disks: 'disk',
  volumes: 'volume',
  interfaces: 'interface',
  networks: 'network',
};

/** What a spec asks for and no guest here gets, in the order of the table. Fields that are false or empty ask for nothing. */
export function unservedFields(spec: DeepReadonly<Partial<VirtualMachineInstanceSpec>> | undefined): UnservedField[] {
  const found: UnservedField[] = [];
  for (const [path, reason] of Object.entries(UNSERVED))
    look(spec, path.split('.'), { field: '', owner: '', reason }, found);
  return [...found, ...unservedBindings(spec)];
}

/** Of one object, in its events. */
const MAX_REPORTED = 20;
/** The same as texts for events. */
export const unservedTexts = (spec: Parameters<typeof unservedFields>[0]): string[] =>
  unservedFields(spec)
    .slice(0, MAX_REPORTED)
    .map(({ text }) => text);

/** Interfaces that are left out, and those that are bound otherwise than they ask. */
function unservedBindings(spec: DeepReadonly<Partial<VirtualMachineInstanceSpec>> | undefined): UnservedField[] {
  const found: UnservedField[] = [];
  const networks = new Map((spec?.networks ?? []).map((network, index) => [network.name, { network, index }]));
  // A template of a machine has no defaults yet.
  for (const [index, nic] of (spec?.domain?.devices?.interfaces ?? []).entries()) {
    if (nic.state === 'absent') continue;
    const at = `domain.devices.interfaces[${index}]`;
    const place = networks.get(nic.name);
    const refusal = refusalOf(nic, place?.network);
    if (refusal) {
      const field = `${refusal.isOf === 'network' ? `networks[${place?.index}]` : at}.${refusal.member}`;
      found.push({ field, text: `interface ${nic.name}: ${refusal.text}; it is left out` });
    } else if (place?.network.multus) {
      if (nic.dhcpOptions)
        found.push({
          field: `${at}.dhcpOptions`,
          text: `interface ${nic.name}: nobody answers DHCP on a multus network`,
        });
    } else if (!nic.masquerade && !nic.passtBinding) {
      const text = 'only address translation is offered; it is served as masquerade';
      found.push({ field: `${at}.bridge`, text: `interface ${nic.name}: ${text}` });
    }
  }
  return found;
}

function look(
  value: unknown,
  [segment, ...rest]: readonly string[],
  at: { readonly field: string; readonly owner: string; readonly reason: string },
  found: UnservedField[],
): void {
  if (segment === undefined) {
    if (isAsked(value)) found.push({ field: at.field, text: `${at.owner}${at.reason}` });
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  const name = segment.replace('[]', '');
  const member = (value as Readonly<Record<string, unknown>>)[name];
  const field = at.field === '' ? name : `${at.field}.${name}`;
  if (name === segment) look(member, rest, { ...at, field }, found);
  else if (Array.isArray(member))
    for (const [index, item] of member.entries())
      look(item, rest, { ...at, field: `${field}[${index}]`, owner: `${NAMED[name] ?? name} ${item?.name}: ` }, found);
}

/** A switch that is off, an empty list and `enabled: false` ask for nothing; an empty object does. */
const isAsked = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : !!value && (value as { enabled?: boolean }).enabled !== false;
