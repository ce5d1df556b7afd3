import { hasPersistentTpm, hasTpm } from '../backend-storage/backend-storage.ts';
import type { MachinePlan, PlanContext } from './machine-plan.ts';

/** Id of the display adapter among the devices of a plan. */
export const VIDEO_ID = 'video0';

/** Serial console, display, balloon, watchdog, input, panic and sound devices, and the controllers they sit on. */
export function configureDevices({ vmi, facts, serialLog }: PlanContext, plan: MachinePlan): void {
  const { devices } = vmi.spec.domain;
  const has = (driver: string): boolean => facts.devices.includes(driver);

  if (devices.autoattachSerialConsole !== false) plan.serial = { log: devices.logSerialConsole !== false && serialLog };
  // The channel of the guest agent; its port is added where the socket is known.
  plan.devices.push({ driver: 'virtio-serial-pci', id: 'virtio-serial0' });
  if (devices.autoattachMemBalloon !== false) plan.devices.push({ driver: 'virtio-balloon-pci', id: 'balloon0' });
  if (plan.graphics) plan.devices.push(videoDevice(devices.video?.type, has, plan));

  const inputs = [...(devices.inputs ?? [])];
  if (devices.autoattachInputDevice && inputs.length === 0)
    inputs.push({ name: 'default-0', type: 'tablet', bus: 'usb' });
  const usb = plan.disks.some((disk) => disk.bus === 'usb') || inputs.some((input) => input.bus !== 'virtio');
  if (usb) plan.devices.push({ driver: 'qemu-xhci', id: 'usb' });
  for (const input of inputs) {
    const kind = input.type === 'keyboard' ? 'keyboard' : 'tablet';
    const driver = input.bus === 'virtio' ? `virtio-${kind}-pci` : kind === 'keyboard' ? 'usb-kbd' : 'usb-tablet';
    plan.devices.push({ driver, id: `ua-${input.name}`, ...(input.bus !== 'virtio' && { bus: 'usb.0' }) });
  }

  // Never left out: where there is no emulator the agent does not start the guest.
  if (hasTpm(vmi.spec)) {
    const persistent = hasPersistentTpm(vmi.spec);
    plan.tpm = { model: persistent ? 'tpm-crb' : 'tpm-tis', persistent };
  }

  const { watchdog } = devices;
  if (watchdog?.i6300esb) {
    plan.devices.push({ driver: 'i6300esb', id: `ua-${watchdog.name}` });
    const { action } = watchdog.i6300esb;
    plan.watchdogAction = action === 'poweroff' || action === 'shutdown' ? action : 'reset';
  }

  for (const [i, panic] of (devices.panicDevices ?? []).entries()) {
    if (panic.model === 'hyperv') {
      if (facts.accelerator === 'kvm')
        plan.cpu = { ...plan.cpu, features: [...plan.cpu.features, { name: 'hv-crash', value: 'on' }] };
      else plan.unsupported.push('the Hyper-V panic device needs KVM; it is left out');
    } else plan.devices.push({ driver: panic.model === 'pvpanic' ? 'pvpanic-pci' : 'pvpanic', id: `panic${i}` });
  }

  if (devices.sound) {
    plan.sound = true;
    if (devices.sound.model === 'ac97') plan.devices.push({ driver: 'AC97', id: 'sound0', audiodev: 'audio0' });
    else
      plan.devices.push(
        { driver: 'ich9-intel-hda', id: 'sound0' },
        { driver: 'hda-duplex', id: 'sound0-codec', bus: 'sound0.0', audiodev: 'audio0' },
      );
  }
}

/** Model of a VMI -> QEMU's device. */
const ADAPTERS: Readonly<Record<string, string>> = {
  vga: 'VGA',
  virtio: 'virtio-vga',
  bochs: 'bochs-display',
  ramfb: 'ramfb',
  cirrus: 'cirrus-vga',
};

/** What the spec names, or upstream's default, where this QEMU has it; else VGA, which every one has. */
function videoDevice(
  type: string | undefined,
  has: (driver: string) => boolean,
  plan: MachinePlan,
): { driver: string; id: string } {
  const wanted = ADAPTERS[type ?? (plan.firmware.kind === 'efi' ? 'bochs' : 'vga')];
  if (wanted !== undefined && (wanted === 'VGA' || has(wanted))) return { driver: wanted, id: VIDEO_ID };
  if (type !== undefined) plan.unsupported.push(`video type ${type} is not offered by this QEMU; vga is used`);
  return { driver: 'VGA', id: VIDEO_ID };
}
