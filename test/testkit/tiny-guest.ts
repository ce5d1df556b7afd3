/** The tiny guest in a data directory's image store, and a VM that boots it. */

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import type { VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { importImage } from '../../packages/node-agent/src/image/local-images.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { ensureGuest } from '../../tools/guest/build-guest.ts';
import { FIRMWARE_PROGRAMS, isInstalled, QEMU_PROGRAMS } from '../../tools/setup/host-packages.ts';

const root = resolve(import.meta.dirname, '../..');

/** Why guests cannot be booted on this host, or undefined when they can. */
export function whyNoGuests(): string | undefined {
  const missing = Object.keys(QEMU_PROGRAMS).filter((program) => !isInstalled(program));
  return missing.length > 0 ? `not on this host: ${missing.join(', ')}` : undefined;
}

/** Why guests with a TPM, or that boot by UEFI, cannot be booted on this host, or undefined when they can. */
export function whyNoFirmware(): string | undefined {
  const missing = Object.entries(FIRMWARE_PROGRAMS).filter(([program]) => !isInstalled(program));
  return missing.length > 0
    ? `not on this host: ${missing.map(([, name]) => name).join(', ')} (apt-get install)`
    : whyNoGuests();
}

/** Imports the guest as localhost/coracle/tiny, disk, kernel and initrd. */
export async function importTinyGuest(dataDir: string): Promise<void> {
  const guest = await ensureGuest();
  const store = await openImageStore(join(dataDir, 'images'), { clock: systemClock });
  await importImage(store, 'coracle/tiny', guest.disk, { kernel: guest.kernel, initrd: guest.initrd, signal: NEVER });
}

/** examples/tiny-vm.yaml under another name. */
export function tinyVm(name: string, change: (vm: VirtualMachine) => void = () => {}): VirtualMachine {
  const vm = parse(readFileSync(join(root, 'examples/tiny-vm.yaml'), 'utf8')) as VirtualMachine;
  vm.metadata = { ...vm.metadata, name, namespace: 'default' };
  change(vm);
  return vm;
}

/** Lets it boot by its kernel, with nothing of its disk read. */
export function byKernel({ spec }: VirtualMachine): void {
  const container = { image: 'localhost/coracle/tiny', kernelPath: '/boot/vmlinuz', initrdPath: '/boot/initrd' };
  spec.template.spec!.domain.firmware = { kernelBoot: { kernelArgs: 'console=ttyS0', container } };
}

/** Lets it boot nothing: its firmware waits for ever, hears no power button, and takes next to no processor time. */
export function bootNothing({ spec }: VirtualMachine): void {
  const instance = spec.template.spec!;
  instance.domain.devices.disks = [];
  instance.volumes = [];
}
