// test:full: a guest for each of KubeVirt's examples.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, whyNoGuests } from '../testkit/tiny-guest.ts';

const root = resolve(import.meta.dirname, '../..');
// KubeVirt's own examples where they are at hand; copies of none are kept, so our fixtures stand in elsewhere.
const SHARED = join(root, '../shared/data/kubevirt-examples');
const EXAMPLES = existsSync(SHARED)
  ? [
      'vm-cirros.yaml',
      'vmi-nocloud.yaml',
      'vmi-masquerade.yaml',
      'vmi-migratable.yaml',
      'vmi-ephemeral.yaml',
      'vmi-kernel-boot.yaml',
      'vm-cirros-sata.yaml',
    ].map((name) => join(SHARED, name))
  : [join(root, 'examples/tiny-vm.yaml')];
/** Where KubeVirt's kernel-boot image keeps them, and where the tiny guest's image does. */
const KERNEL = { from: [/\/boot\/vmlinuz-virt/g, /\/boot\/initramfs-virt/g], to: ['/boot/vmlinuz', '/boot/initrd'] };
const why = whyNoGuests();

// S-080: KubeVirt's own example manifests run with their image swapped (where they are at hand; else our example does).
test("KubeVirt's example manifests boot with only the image swapped", {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-examples-'));
  let plane: ControlPlaneProcess | undefined;
  t.after(async () => {
    await plane?.kill('SIGINT');
    rmSync(dir, { recursive: true, force: true });
  });
  await importTinyGuest(dir);
  plane = await startProcess(dir, { nodes: 1 });
  const { client, close } = adminOf(dir);
  for (const path of EXAMPLES) {
    let text = readFileSync(path, 'utf8').replace(/image: .*/g, 'image: localhost/coracle/tiny');
    KERNEL.from.forEach((pattern, at) => {
      text = text.replace(pattern, KERNEL.to[at]!);
    });
    const [object] = parseAllDocuments(text).map(
      (document) => document.toJS() as VirtualMachine | VirtualMachineInstance,
    );
    object!.metadata.namespace = 'default';
    const key = { namespace: 'default', name: object!.metadata.name! };
    if (object!.kind === 'VirtualMachine') {
      await client.create(VIRTUAL_MACHINES, object as VirtualMachine);
      await client
        .raw('PUT', `/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/${key.name}/start`, {
          body: {},
        })
        .catch((error: Error) => {
          // Some examples run from the start.
          if (!/already running|manual start/i.test(error.message)) throw error;
        });
    } else await client.create(VIRTUAL_MACHINE_INSTANCES, object as VirtualMachineInstance);
    const running = await eventually(
      `${path} to run`,
      async () => {
        const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, key);
        assert.notEqual(vmi.status?.phase, 'Failed');
        return vmi.status?.phase === 'Running' ? vmi : undefined;
      },
      30_000,
    );
    assert.match(running.spec.domain?.firmware?.uuid ?? '', /^[0-9a-f-]{36}$/, path);
    t.diagnostic(`${path.split('/').at(-1)} runs on ${running.status?.nodeName}`);
    if (object!.kind === 'VirtualMachine') await client.delete(VIRTUAL_MACHINES, key);
    else await client.delete(VIRTUAL_MACHINE_INSTANCES, key);
  }
  await close();
});
