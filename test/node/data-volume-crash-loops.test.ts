/** Machines with DataVolumes that do not start: the disk cannot be filled, or the guest ends before it runs. */
// test:full: real guests, and the pauses between starts and imports that fail.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import {
  EVENTS,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import type { StorageClass } from '../../packages/apimachinery/src/types/types.ts';
import { orAbsent } from '../../packages/client/src/api-failure.ts';
import { DATA_VOLUMES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { ensureGuest } from '../../tools/guest/build-guest.ts';
import { eventually as waitFor } from '../testkit/eventually.ts';
import { type ImageServer, startImageServer } from '../testkit/image-server.ts';
import { type Board, NAMESPACE, startBoard } from './board.ts';

/** The second pause between starts is 40 to 60 seconds; a guest boots within it. */
const WAIT_MS = 150_000;
const eventually = <T>(what: string, read: () => Promise<T>) => waitFor(what, read, WAIT_MS);

let board: Board;
let server: ImageServer;
let disk: Uint8Array;
beforeEach(() => {
  server.fail.length = 0;
  server.stall.length = 0;
});
before(async () => {
  board = await startBoard();
  server = await startImageServer();
  disk = await readFile((await ensureGuest()).disk);
});
after(async () => {
  await board?.close();
  await server?.close();
});

const key = (name: string) => ({ namespace: NAMESPACE, name });
const machineOf = (name: string): Promise<VirtualMachine> => board.client.get(VIRTUAL_MACHINES, key(name));
const instanceOf = (name: string) => orAbsent(board.client.get(VIRTUAL_MACHINE_INSTANCES, key(name)));
const shows = (name: string, status: string): Promise<unknown> =>
  eventually(`${name} is ${status}`, async () => (await machineOf(name)).status?.printableStatus === status);
const setSpec = (name: string, spec: object) =>
  board.client.patch(VIRTUAL_MACHINES, key(name), { type: 'merge', body: { spec } });

const template = (name: string, spec: object) => ({
  metadata: { name },
  spec: { storage: { resources: { requests: { storage: '256Mi' } } }, ...spec },
});

interface Wanted {
  readonly templates: readonly object[];
  readonly disks?: readonly object[];
  readonly volumes?: readonly object[];
}

/** A machine that boots from `NAME-root`. */
const machine = (name: string, { templates, disks = [], volumes = [] }: Wanted): Promise<VirtualMachine> =>
  board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      dataVolumeTemplates: templates,
      template: {
        spec: {
          terminationGracePeriodSeconds: 0,
          domain: {
            devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }, ...disks] },
            memory: { guest: '128Mi' },
          },
          volumes: [{ name: 'root', dataVolume: { name: `${name}-root` } }, ...volumes],
        },
      },
    },
  } as unknown as VirtualMachine);

/** Deletes it, and waits until nothing of it or of its disks is left. */
async function leavesNothing(name: string, ...dataVolumes: string[]): Promise<void> {
  const { client } = board;
  const claims = await Promise.all(dataVolumes.map((one) => orAbsent(client.get(PERSISTENT_VOLUME_CLAIMS, key(one)))));
  await client.delete(VIRTUAL_MACHINES, key(name));
  for (const [type, names] of [
    [VIRTUAL_MACHINES, [name]],
    [VIRTUAL_MACHINE_INSTANCES, [name]],
    [DATA_VOLUMES, dataVolumes],
    [PERSISTENT_VOLUME_CLAIMS, dataVolumes],
  ] as const)
    for (const one of names)
      await eventually(
        `${type.kind} ${one} is gone`,
        async () => !(await orAbsent(client.get(type as never, key(one)))),
      );
  for (const { spec } of claims.flatMap((claim) => claim ?? []))
    if (spec?.volumeName) {
      const volume = { namespace: '', name: spec.volumeName };
      await eventually('its volume is gone', async () => !(await orAbsent(client.get(PERSISTENT_VOLUMES, volume))));
    }
}

// S-1402: A machine whose DataVolume cannot be filled is DataVolumeError, with the reason, and has no instance; it can be
//   stopped and started meanwhile, starts by itself once the source answers, and leaves nothing when it is deleted instead.
// Compat KubeVirt's API, P1, yes: crash loops of machines with dataVolumeTemplates: DataVolumeError, Provisioning, CrashLoopBackOff, recovery, deletion in the middle
test('an import that fails again and again, and works at last', async () => {
  const url = server.serve('/tiny.qcow2', disk);
  const fails = (): number => server.fail.push(...Array<number>(1000).fill(503));
  fails();
  await machine('web', { templates: [template('web-root', { source: { http: { url } } })] });
  await shows('web', 'DataVolumeError');
  const again = await eventually('a second attempt', async () => {
    const { status } = await board.client.get(DATA_VOLUMES, key('web-root'));
    return (status?.restartCount ?? 0) >= 2 ? status : undefined;
  });
  const running = again?.conditions?.find(({ type }) => type === 'Running');
  assert.deepEqual([running?.status, running?.reason], ['False', 'Error']);
  const { status } = await machineOf('web');
  const ready = status?.conditions?.find(({ type }) => type === 'DataVolumesReady');
  assert.match(ready?.message ?? '', /^DataVolume web-root failed: .*503/);
  assert.equal(await instanceOf('web'), undefined);
  assert.equal(status?.startFailure ?? undefined, undefined, 'it was never started');

  await setSpec('web', { runStrategy: 'Halted' });
  await eventually('that is seen', async () => {
    const { metadata, status: now } = await machineOf('web');
    return now?.desiredGeneration === metadata.generation;
  });
  server.fail.length = 0;
  await eventually('the disk is there', async () => {
    const { status: now } = await board.client.get(DATA_VOLUMES, key('web-root'));
    return now?.phase === 'Succeeded';
  });
  await shows('web', 'Stopped');
  assert.equal(await instanceOf('web'), undefined);
  await setSpec('web', { runStrategy: 'Always' });
  await shows('web', 'Running');
  await leavesNothing('web', 'web-root');

  fails();
  await machine('never', { templates: [template('never-root', { source: { http: { url } } })] });
  await shows('never', 'DataVolumeError');
  await leavesNothing('never', 'never-root');
  server.fail.length = 0;

  server.stall.push(...Array<number>(100).fill(1024 * 1024));
  await machine('stalls', { templates: [template('stalls-root', { source: { http: { url } } })] });
  await eventually('an import is under way', async () => {
    const { status: now } = await board.client
      .get(DATA_VOLUMES, key('stalls-root'))
      .catch(() => ({ status: undefined }));
    return now?.phase === 'ImportInProgress';
  });
  await shows('stalls', 'Provisioning');
  await leavesNothing('stalls', 'stalls-root');
  server.stall.length = 0;
});

// S-1402
test('a disk whose class is not there yet', async () => {
  const storage = {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '256Mi' } },
    storageClassName: 'later',
  };
  const url = server.serve('/later.qcow2', disk);
  await machine('later', { templates: [template('later-root', { storage, source: { http: { url } } })] });
  await shows('later', 'Provisioning');
  await eventually('the claim says why', async () => {
    const { items } = await board.client.list(EVENTS, { namespace: NAMESPACE });
    return items.some(
      ({ reason, involvedObject, message }) =>
        involvedObject.name === 'later-root' &&
        reason === 'ProvisioningFailed' &&
        /"later" not found/.test(message ?? ''),
    );
  });
  assert.equal(await instanceOf('later'), undefined);
  await board.client.create(STORAGE_CLASSES, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'later' },
    provisioner: 'local.coracle.dev',
  } as StorageClass);
  await shows('later', 'Running');
  await leavesNothing('later', 'later-root');
});

// S-1403: A machine with DataVolumes whose guest ends before it ran waits longer each time, as one without: CrashLoopBackOff. Its
//   disks are filled once and stay; it starts when what is wrong with it is put right, or goes with them when it is deleted.
test('a guest that ends before it runs, on disks of DataVolumes', async () => {
  const url = server.serve('/loops.qcow2', disk);
  // A SATA hard disk cannot be read-only: the machine cannot be built, until that disk goes.
  const looping = (name: string) =>
    machine(name, {
      templates: [
        template(`${name}-root`, { source: { http: { url } } }),
        template(`${name}-data`, { source: { blank: {} } }),
      ],
      disks: [{ name: 'data', disk: { bus: 'sata' } }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `${name}-data`, readOnly: true } }],
    });
  const made = await looping('loops');
  await looping('goes');
  const failed = await eventually('a second failure', async () => {
    const { status } = await machineOf('loops');
    const isLooping = (status?.startFailure?.consecutiveFailCount ?? 0) >= 2;
    return isLooping && status?.printableStatus === 'CrashLoopBackOff' ? status : undefined;
  });
  const waits = Date.parse(failed?.startFailure?.retryAfterTimestamp ?? '') - Date.now();
  assert.ok(waits <= 61_000, `the second pause is 40 to 60 seconds, not ${waits} ms`);
  await shows('goes', 'CrashLoopBackOff');
  await leavesNothing('goes', 'goes-root', 'goes-data');

  const { spec } = made;
  const first = ({ name }: { readonly name: string }): boolean => name === 'root';
  const disks = spec.template.spec?.domain.devices.disks?.filter(first);
  const volumes = spec.template.spec?.volumes?.filter(first);
  await setSpec('loops', {
    dataVolumeTemplates: spec.dataVolumeTemplates?.slice(0, 1),
    template: { spec: { domain: { devices: { disks } }, volumes } },
  });
  await shows('loops', 'Running');
  assert.equal((await machineOf('loops')).status?.startFailure ?? undefined, undefined);
  const filled = await board.client.get(DATA_VOLUMES, key('loops-root'));
  assert.deepEqual([filled.status?.phase, filled.status?.restartCount ?? 0], ['Succeeded', 0]);
  assert.equal(
    server.requests.filter((line) => line.startsWith('GET /loops.qcow2')).length,
    2,
    'once for each machine',
  );
  await leavesNothing('loops', 'loops-root');
});
