import assert from 'node:assert/strict';
import { linkSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { type Part, partly } from '../../../../../test/testkit/partly.ts';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { Client } from '../../../../client/src/client.ts';
import type { VirtualMachine, VirtualMachineInstance } from '../../../../kubevirt/src/kinds/kinds.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { dataDirAt } from '../../config/data-dir.ts';
import { type SpaceOnDisk, spaceOnDisk } from './space-on-disk.ts';

const KIB = 1024;
const CLAIMS = [
  { metadata: { namespace: 'shop', name: 'web-root', uid: 'claim-root' } },
  { metadata: { namespace: 'other', name: 'web-root', uid: 'claim-of-other' } },
  {
    metadata: { namespace: 'shop', name: 'state', uid: 'claim-state', labels: { 'persistent-state-for': 'web' } },
  },
];
const volumes = [
  { name: 'root', dataVolume: { name: 'web-root' } },
  { name: 'image', containerDisk: { image: 'i' } },
];
const machine = (name: string, uid: string | undefined): Parameters<SpaceOnDisk['bytesOf']>[0] => ({
  key: { namespace: 'shop', name },
  vm: partly<VirtualMachine>({ spec: { template: { spec: { volumes } as Part<VirtualMachineInstance['spec']> } } }),
  vmi: uid === undefined ? undefined : partly<VirtualMachineInstance>({ metadata: { uid }, spec: { volumes } }),
});

// S-1408: What a machine takes on the disk is what its claims and firmware state, its layers over images and its logs take; what it
//   shares with others counts once.
test('space of a machine: claims, firmware state, layers and logs', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'coracle-space-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const write = (path: string, bytes: number): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), Buffer.alloc(bytes, 1));
  };
  write('claims/pool.json', 4 * KIB);
  write('claims/claim-root/layer-1.qcow2', 64 * KIB);
  write('claims/claim-root/memory-dumps/one', 8 * KIB);
  write('claims/claim-state/files/efi-vars.fd', 16 * KIB);
  write('claims/claim-of-other/disk.img', 128 * KIB);
  write('nodes/one/vms/instance/image.qcow2', 32 * KIB);
  write('nodes/one/vms/instance/serial.log', 4 * KIB);
  write('nodes/one/vms/instance/image.base', 256 * KIB);
  linkSync(join(root, 'nodes/one/vms/instance/serial.log'), join(root, 'nodes/one/vms/instance/serial.log.1'));
  const client = { list: async () => ({ items: CLAIMS.map((one) => partly<PersistentVolumeClaim>(one)) }) };
  const { bytes, bytesOf } = await spaceOnDisk(dataDirAt(root), client as unknown as Client, NEVER);
  assert.equal(bytesOf(machine('web', 'instance')), (64 + 8 + 16 + 32 + 4) * KIB);
  assert.equal(bytesOf(machine('web', undefined)), (64 + 8 + 16) * KIB);
  assert.equal(bytesOf(machine('twin', 'another')), (64 + 8) * KIB, 'without a state of its own');
  assert.equal(bytes, (4 + 64 + 8 + 16 + 128 + 32 + 4) * KIB);
});
