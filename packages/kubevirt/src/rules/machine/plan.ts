/** `machinePlan`: runs the configurators in order over one draft. */

import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { configureClock } from './clock.ts';
import { configureCpu } from './cpu.ts';
import { configureDevices } from './devices.ts';
import { configureDisks } from './disks.ts';
import { configureFeatures } from './features.ts';
import { configureFirmware } from './firmware.ts';
import { configureHotplug } from './hotplug.ts';
import { configureInterfaces } from './interfaces.ts';
import {
  DEFAULT_SMBIOS,
  type MachinePlan,
  type NodeFacts,
  type PlanContext,
  type SmbiosConfig,
} from './machine-plan.ts';
import { configureMemory } from './memory.ts';
import { unservedFields } from './unserved-fields.ts';

/** Each fills its part of the draft; it says in `plan.unsupported` what it had to leave out. */
const CONFIGURATORS: readonly ((context: PlanContext, plan: MachinePlan) => void)[] = [
  configureMachine,
  configureCpu,
  configureMemory,
  configureFirmware,
  configureClock,
  configureFeatures,
  configureHotplug,
  configureDisks,
  configureInterfaces,
  configureDevices,
  refuseRest,
];

/**
 * The machine of a VMI on a node with these facts. Throws PlanError when the spec makes no machine. The same VMI and
 * facts always give the same plan.
 */
export function machinePlan(
  vmi: ReadonlyVmi,
  facts: NodeFacts,
  options: { readonly smbios?: SmbiosConfig; readonly serialLog?: boolean } = {},
): MachinePlan {
  const { smbios = DEFAULT_SMBIOS, serialLog = true } = options;
  const { spec, metadata } = vmi;
  const plan: MachinePlan = {
    name: `${metadata.namespace ?? ''}_${metadata.name ?? ''}`,
    uuid: spec.domain.firmware?.uuid ?? metadata.uid ?? '',
    accelerator: facts.accelerator,
    sandbox: facts.sandbox,
    machine: { type: '', options: {} },
    cpu: { model: 'max', features: [], sockets: 1, cores: 1, threads: 1 },
    memoryBytes: 0,
    smbios: [],
    firmware: { kind: 'bios' },
    rtc: {},
    globals: [],
    disks: [],
    interfaces: [],
    ioThreads: [],
    devices: [],
    graphics: spec.domain.devices.autoattachGraphicsDevice !== false,
    rng: spec.domain.devices.rng !== undefined,
    sound: false,
    rebootPolicy: spec.domain.rebootPolicy === 'Terminate' ? 'terminate' : 'reboot',
    startPaused: spec.startStrategy === 'Paused',
    hostname: hostnameOf(vmi),
    unsupported: [],
  };
  for (const configure of CONFIGURATORS) configure({ vmi, facts, smbios, serialLog }, plan);
  return plan;
}

/** The guest's host name: spec.hostname, else the object's name cut at the first dot, as a DNS label. */
function hostnameOf(vmi: ReadonlyVmi): string {
  const name = vmi.spec.hostname || (vmi.metadata.name ?? '').split('.')[0] || 'vm';
  return name.slice(0, 63).replace(/-+$/, '');
}

/** q35 means the newest q35 this QEMU has; so does a q35 version it does not have. */
function configureMachine({ vmi, facts }: PlanContext, plan: MachinePlan): void {
  const wanted = vmi.spec.domain.machine?.type || 'q35';
  const resolve = (name: string): string | undefined =>
    Object.hasOwn(facts.machineAliases, name)
      ? facts.machineAliases[name]
      : facts.machineTypes.includes(name)
        ? name
        : undefined;
  const family = /^(pc-)?i440fx|^pc$/.test(wanted) ? 'pc' : 'q35';
  const type = resolve(wanted) ?? resolve(family) ?? resolve('q35') ?? 'q35';
  if (resolve(wanted) === undefined && wanted !== 'q35')
    plan.unsupported.push(`machine type ${wanted} is not offered by QEMU ${facts.qemuVersion}; ${type} is used`);
  plan.machine.type = type;
}

/** Names what no other configurator looked at: asked for, accepted by the API, not offered here. */
function refuseRest({ vmi }: PlanContext, plan: MachinePlan): void {
  for (const { text } of unservedFields(vmi.spec)) plan.unsupported.push(text);
}
