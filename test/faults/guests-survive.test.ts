import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { byKernel, importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

/** `control-plane-kill.test.ts` has more of them. */
const ROUNDS = 2;
const KEY = { namespace: 'default', name: 'tiny' };
const why = whyNoGuests();

/** Pid of the QEMU whose command line names this data directory. */
const qemuOf = (dataDir: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return line.includes('qemu-system') && line.includes(dataDir);
      } catch {
        return false;
      }
    })
    .map(Number);

// S-059: `kill -9` of QEMU: the machine gets another guest by its strategy, under the same firmware identity; a start
//   that failed is backed off.
// S-060: `kill -9` of the control plane leaves guests running; a heartbeat in the guest shows no reset.
test('guests run on through kill -9 of the control plane; a killed guest starts anew with back-off', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-guests-'));
  let plane: ControlPlaneProcess | undefined;
  t.after(async () => {
    await plane?.kill('SIGINT');
    for (const pid of qemuOf(dir)) process.kill(pid, 'SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  await importTinyGuest(dir);
  plane = await startProcess(dir, { nodes: 1 });
  let admin = adminOf(dir);
  await admin.client.create(VIRTUAL_MACHINES, tinyVm('tiny', byKernel));
  const podAddress = await eventually(
    'an address',
    async () => (await admin.client.get(VIRTUAL_MACHINE_INSTANCES, KEY)).status?.interfaces?.[0]?.ipAddress,
  );
  const address = hostAddressOf(podAddress);
  const heartbeat = (): Promise<number> =>
    eventually('a heartbeat', async () => {
      const response = await fetch(`http://${address}:${usualHostPort(8080)}/heartbeat`, {
        signal: AbortSignal.timeout(10_000),
      });
      return response.ok ? Number(await response.text()) : undefined;
    });
  let last = await heartbeat();
  const pids = qemuOf(dir);
  assert.equal(pids.length, 1);
  const { uid } = (await admin.client.get(VIRTUAL_MACHINE_INSTANCES, KEY)).metadata;

  for (let round = 0; round < ROUNDS; round++) {
    await admin.close();
    await plane.kill('SIGKILL');
    const alone = await heartbeat();
    assert.ok(alone >= last, `round ${round}: the guest was started anew while nobody looked`);
    plane = await startProcess(dir, { nodes: 1, port: plane.port });
    admin = adminOf(dir);
    // Adopted: the agent answers for the guest again.
    await eventually('the node', async () => {
      const vmi = await admin.client.get(VIRTUAL_MACHINE_INSTANCES, KEY);
      return vmi.status?.phase === 'Running' && vmi.metadata.uid === uid ? true : undefined;
    });
    const after = await heartbeat();
    assert.ok(after >= alone, `round ${round}: the guest was started anew`);
    assert.deepEqual(qemuOf(dir), pids, `round ${round}: another QEMU runs`);
    last = after;
  }

  // The guest itself dies: its VMI ends as Failed, and the strategy brings another one.
  process.kill(pids[0]!, 'SIGKILL');
  const next = await eventually('another instance', async () => {
    const vmi = await admin.client.get(VIRTUAL_MACHINE_INSTANCES, KEY);
    return vmi.metadata.uid !== uid && vmi.status?.phase === 'Running' ? vmi : undefined;
  });
  assert.notEqual(next.metadata.uid, uid);
  const vm = await admin.client.get(VIRTUAL_MACHINES, KEY);
  assert.equal(vm.status?.startFailure, undefined, 'a guest that ran counts as no start failure');
  assert.equal(
    next.spec.domain?.firmware?.uuid,
    vm.spec.template?.spec?.domain?.firmware?.uuid,
    'the firmware identity is for life',
  );

  // One that cannot start at all is tried again, ever less often.
  await admin.client.create(
    VIRTUAL_MACHINES,
    tinyVm('broken', (broken) => {
      const [disk] = broken.spec.template.spec!.volumes!;
      disk!.containerDisk = { image: 'localhost/no/such-image' };
    }),
  );
  await eventually('the reason', async () => {
    const broken = await admin.client.get(VIRTUAL_MACHINES, { namespace: 'default', name: 'broken' });
    return ['ErrImagePull', 'ImagePullBackOff', 'ErrImageNeverPull'].includes(broken.status?.printableStatus ?? '')
      ? true
      : undefined;
  });
  await admin.close();
});
