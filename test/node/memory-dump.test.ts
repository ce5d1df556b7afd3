/** The memory of a guest is dumped into a claim, while it runs on; a machine that cannot start waits longer each time. */
// test:full: a guest, and the pauses between starts that fail.
import assert from 'node:assert/strict';
import { closeSync, globSync, mkdtempSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { adminOf, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const namespace = 'default';
const key = (name: string) => ({ namespace, name });

// S-1291: `kubevirt.io/keep-launcher-alive-after-failure`: the launcher Pod of a guest that failed runs on with the guest's
//   files until it is deleted.
async function keptAfterFailure(
  client: Client,
  { data, vmiUid }: { readonly data: string; readonly vmiUid: string },
): Promise<void> {
  const [qemu] = await findProcesses(
    (argv) =>
      argv[0]?.includes('qemu-system') === true &&
      argv.some((word) => word.includes(join(data, 'nodes')) && word.includes(vmiUid)),
  );
  assert.ok(qemu, 'the guest runs');
  process.kill(qemu, 'SIGKILL');
  await eventually('it failed', async () => {
    const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, key('dumped'));
    return vmi.status?.phase === 'Failed';
  });
  const labelSelector = `kubevirt.io/created-by=${vmiUid}`;
  const pods = async () => (await client.list(PODS, { namespace, labelSelector })).items;
  const [pod] = await pods();
  await eventually('the Pod says that it stays', async () => {
    const { items } = await client.list(EVENTS, { namespace });
    return items.some(
      ({ reason, involvedObject }) => reason === 'KeptAfterFailure' && involvedObject.name === pod?.metadata.name,
    );
  });
  const files = (): string[] => globSync(join(data, 'nodes/*/vms', vmiUid, 'serial.log'));
  assert.equal((await pods())[0]?.status?.phase, 'Running');
  assert.equal(files().length, 1);
  await client.delete(PODS, { namespace, name: pod?.metadata.name ?? '' });
  await eventually('the Pod goes with the files', async () => (await pods()).length === 0 && files().length === 0);
}

/** Machines that cannot be built: the first is repaired after its first failure, the other goes on failing. */
const LOOPING = ['loops', 'loops-on'] as const;

/** Waits until a machine failed that often, and gives it back. */
const looping = (client: Client, name: (typeof LOOPING)[number], times: number) =>
  eventually(`${name} waits after ${times} failures`, async () => {
    const loops = await client.get(VIRTUAL_MACHINES, key(name));
    const count = loops.status?.startFailure?.consecutiveFailCount ?? 0;
    return count >= times && loops.status?.printableStatus === 'CrashLoopBackOff' ? loops : undefined;
  });

/** A start fails for a reason that an event gives; then the machine is repaired. */
async function failsAndIsRepaired(client: Client): Promise<void> {
  const { spec } = await looping(client, 'loops', 1);
  await eventually('an event says why', async () =>
    (await client.list(EVENTS, { namespace })).items.some(
      ({ involvedObject, message }) =>
        involvedObject.name?.startsWith('loops') && message?.includes('a SATA hard disk cannot be read-only'),
    ),
  );
  const volumes = spec.template.spec?.volumes?.filter(({ name }) => name !== 'data');
  const disks = spec.template.spec?.domain.devices.disks?.filter(({ name }) => name !== 'data');
  await client.patch(VIRTUAL_MACHINES, key('loops'), {
    type: 'merge',
    body: { spec: { template: { spec: { volumes, domain: { devices: { disks } } } } } },
  });
}

/** It fails again, and is tried again so much later: `10 n²` seconds after its n-th failure, which was after the last delay. */
async function delayGrows(client: Client, before: VirtualMachine): Promise<void> {
  const { consecutiveFailCount: first = 0, retryAfterTimestamp: from = '' } = before.status?.startFailure ?? {};
  const { status } = await looping(client, 'loops-on', first + 1);
  const { consecutiveFailCount: count = 0, retryAfterTimestamp: until = '' } = status?.startFailure ?? {};
  const laterMs = Date.parse(until) - Date.parse(from);
  assert.ok(laterMs >= 10_000 * count ** 2 - 1000, `${laterMs} ms later after failure ${count}`);
}

// S-1288: The memory of a running guest is dumped into a claim as an ELF file (`virtctl memory-dump get`), again after that,
//   and let go; the guest runs on, and its machine asks for no restart.
// Compat KubeVirt's API, P2, yes: memorydump, removememorydump: phases, file on the claim, volume in the template
// S-1289: A machine whose guest ends before it ran waits longer each time: CrashLoopBackOff, with `startFailure` and the
//   reason; when it starts at last, nothing is left of that.
// Compat KubeVirt's API, P1, yes: `startFailure`: CrashLoopBackOff with upstream's delays
test('memory is dumped into a claim while the guest runs on, and starts that fail are tried later and later', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const data = mkdtempSync(join(tmpdir(), 'coracle-memory-dump-'));
  await importTinyGuest(data);
  const plane = await startProcess(data, { nodes: 1 });
  const admin = adminOf(data);
  const { client } = admin;
  t.after(async () => {
    for (const name of ['dumped', ...LOOPING]) await client.delete(VIRTUAL_MACHINES, key(name)).catch(() => undefined);
    await eventually('the guests end', async () => {
      const { items } = await client.list(VIRTUAL_MACHINE_INSTANCES, { namespace });
      return items.length === 0;
    }).finally(async () => {
      await admin.close();
      await plane.kill('SIGKILL');
      rmSync(data, { recursive: true, force: true });
    });
  });
  const machine = (name: string) => client.get(VIRTUAL_MACHINES, key(name));
  await client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'dump', namespace },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  await client.create(
    VIRTUAL_MACHINES,
    tinyVm('dumped', ({ spec }) => {
      delete spec.running;
      spec.runStrategy = 'Once';
      const annotations = { 'kubevirt.io/keep-launcher-alive-after-failure': 'true' };
      spec.template.metadata = { ...spec.template.metadata, annotations };
    }),
  );
  // A SATA hard disk cannot be read-only: the machines cannot be built, until the bus is another.
  for (const name of LOOPING)
    await client.create(
      VIRTUAL_MACHINES,
      tinyVm(name, ({ spec }) => {
        const { domain, volumes } = spec.template.spec!;
        domain.devices.disks!.push({ name: 'data', disk: { bus: 'sata' } });
        volumes!.push({ name: 'data', persistentVolumeClaim: { claimName: 'dump', readOnly: true } });
      }),
    );
  await failsAndIsRepaired(client);
  const failed = await looping(client, 'loops-on', 1);
  const before = await eventually('dumped runs', async () => {
    const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, key('dumped'));
    return vmi.status?.phase === 'Running' ? vmi : undefined;
  });

  const dump = async (more: object): Promise<string> => {
    const subresource = `/apis/subresources.kubevirt.io/v1/namespaces/${namespace}/virtualmachines/dumped/memorydump`;
    const last = (await machine('dumped')).status?.memoryDumpRequest?.fileName;
    await client.raw('PUT', subresource, { body: more });
    let shown: unknown;
    const done = await eventually('the dump is there', async () => {
      const request = (await machine('dumped')).status?.memoryDumpRequest;
      shown = request;
      assert.notEqual(request?.phase, 'Failed', JSON.stringify(request));
      return request?.phase === 'Completed' && request.fileName !== last ? request : undefined;
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(shown)}`);
    });
    assert.ok(done.startTimestamp && done.endTimestamp);
    return done.fileName ?? '';
  };
  const claim = () => client.get(PERSISTENT_VOLUME_CLAIMS, key('dump'));
  const check = async (fileName: string): Promise<void> => {
    const directory = join(data, 'claims', (await claim()).metadata.uid ?? '', 'memory-dumps');
    assert.deepEqual(readdirSync(directory), [fileName]);
    const file = join(directory, fileName);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const magic = Buffer.alloc(4);
    const handle = openSync(file, 'r');
    readSync(handle, magic);
    closeSync(handle);
    assert.equal(magic.toString('latin1'), '\x7fELF');
    assert.ok(statSync(file).size > 64 * 1024 * 1024, `${statSync(file).size} bytes`);
    assert.equal((await claim()).metadata.annotations?.['kubevirt.io/memory-dump'], fileName);
  };
  const first = await dump({ claimName: 'dump' });
  assert.match(first, /^dumped-dump-\d{8}-\d{6}\.memory\.dump$/);
  await check(first);
  const vm = await machine('dumped');
  const memoryDump = { claimName: 'dump', hotpluggable: true };
  assert.deepEqual(vm.spec.template.spec?.volumes?.at(-1), { name: 'dump', memoryDump });
  assert.ok(!vm.status?.conditions?.some(({ type }) => type === 'RestartRequired' || type === 'Paused'));
  const after = await eventually('the volume is out of the instance', async () => {
    const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, key('dumped'));
    return vmi.status?.volumeStatus?.some(({ name }) => name === 'dump') ? undefined : vmi;
  });
  assert.equal(after.metadata.uid, before.metadata.uid);
  assert.ok(!after.spec.volumes?.some(({ name }) => name === 'dump'));
  await check(await dump({}));
  const remove = `/apis/subresources.kubevirt.io/v1/namespaces/${namespace}/virtualmachines/dumped/removememorydump`;
  await client.raw('PUT', remove, { body: {} });
  const rid = await eventually('the claim is let go', async () => {
    const now = await machine('dumped');
    return now.status?.memoryDumpRequest ? undefined : now;
  });
  assert.ok(!rid.spec.template.spec?.volumes?.some((volume) => volume.memoryDump));

  await keptAfterFailure(client, { data, vmiUid: before.metadata.uid ?? '' });

  await delayGrows(client, failed);
  const well = await eventually('it starts at last', async () => {
    const loops = await machine('loops');
    return loops.status?.printableStatus === 'Running' && loops.status.ready ? loops : undefined;
  });
  assert.equal(well.status?.startFailure ?? undefined, undefined);
});
