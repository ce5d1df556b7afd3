import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { calledInProcess } from '../../packages/runtime/src/http/in-process-peer.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, NAMESPACE, startBoard } from './board.ts';
import { byAgent, guestAgentOf, inGuest } from './in-guest.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const NAME = 'talks';
/** One call of the node API, as virt-api makes it. */
async function ask(method: string, action: string, { query = '', body = NO_BYTES as Uint8Array } = {}) {
  const answer = await calledInProcess(board.agent.handler)({
    method,
    path: `/v1/namespaces/${NAMESPACE}/virtualmachineinstances/${NAME}/${action}`,
    query,
    headers: {},
    body,
    peer: { address: '' },
    signal: NEVER,
  });
  assert.ok(answer.body instanceof Uint8Array);
  const text = new TextDecoder().decode(answer.body);
  return { status: answer.status, bytes: answer.body, json: text.startsWith('{') ? JSON.parse(text) : undefined };
}

// S-1277: A guest that was frozen with a time limit is thawed when it is over, also when the node agent has ended meanwhile.
// S-204: A guest that runs the QEMU guest agent tells of itself, takes a freeze, and shows its screen; a silent or
//   endless one costs its limit.
test('a guest that runs the QEMU guest agent tells of itself, takes a freeze, and shows its screen', async (t) => {
  await board.createVmi(NAME, {
    terminationGracePeriodSeconds: 0,
    readinessProbe: { guestAgentPing: {}, periodSeconds: 1, failureThreshold: 1 },
    domain: {
      devices: {
        disks: [
          { name: 'root', disk: { bus: 'virtio' } },
          { name: 'data', disk: { bus: 'virtio' } },
        ],
      },
      memory: { guest: '160Mi' },
      clock: { timezone: 'Asia/Kolkata' },
    },
    volumes: [
      { name: 'root', containerDisk: { image: 'localhost/tiny' } },
      { name: 'data', emptyDisk: { capacity: '16Mi' } },
    ],
  });
  await board.until(NAME, 'running', (vmi) => vmi.status?.phase === 'Running');
  const early = await ask('GET', 'guestosinfo');
  assert.deepEqual(
    [early.status, early.json.message.split(': ').at(-1)],
    [409, 'VMI does not have guest agent connected'],
  );

  await t.test('status: what it is and where', async () => {
    const vmi = await board.until(
      NAME,
      'what the agent tells',
      (one) => one.status?.guestOSInfo?.kernelRelease !== undefined,
    );
    assert.ok(vmi.status?.conditions?.some(({ type, status }) => type === 'AgentConnected' && status === 'True'));
    assert.match(vmi.status?.guestOSInfo?.kernelRelease ?? '', /^\d+\.\d+/);
    const [first] = vmi.status?.interfaces ?? [];
    assert.deepEqual(
      [first?.name, first?.infoSource, first?.interfaceName],
      ['default', 'domain, guest-agent', 'eth0'],
    );
    assert.match(first?.ipAddress ?? '', /^100\./, 'the address of the VM, not the one behind it');
  });

  // S-1656
  await t.test('its clock started in its zone, which this guest takes for UTC', async () => {
    const ahead = Number(await byAgent(board, NAME, 'date +%s')) - Date.now() / 1000;
    assert.ok(Math.abs(ahead - 5.5 * 3600) < 60, `${ahead} s`);
  });

  await t.test('subresources', async () => {
    const { json } = await ask('GET', 'guestosinfo');
    assert.equal(json.hostname, 'tiny');
    assert.match(json.guestAgentVersion, /^\d+\.\d+/);
    assert.ok(json.supportedCommands.some((one: { name: string }) => one.name === 'guest-fsfreeze-freeze'));
    assert.match(json.os.kernelRelease, /^\d+\.\d+/);
    await inGuest(board, NAME, 'true');
    await eventually('who is logged in', async () =>
      (await ask('GET', 'userlist')).json.items.some((one: { userName: string }) => one.userName === 'root'),
    );
    const filesystems = await ask('GET', 'filesystemlist');
    assert.deepEqual([filesystems.status, Array.isArray(filesystems.json.items)], [200, true]);
  });

  // S-1306: Processors, memory, disks and network of a guest are on `/metrics` of its node, as kernel, QEMU, balloon driver and guest
  //   agent count them.
  await t.test('figures of it, under the names of KubeVirt', async () => {
    const line = async (name: string, labels = ''): Promise<number> => {
      const { body } = await calledInProcess(board.agent.handler)({
        ...{ method: 'GET', path: '/metrics', query: '', headers: {}, body: NO_BYTES },
        ...{ peer: { address: '' }, signal: NEVER },
      });
      const start = `kubevirt_vmi_${name}{node="`;
      const text = new TextDecoder().decode(body as Uint8Array);
      const found = text.split('\n').find((one) => one.startsWith(start) && one.includes(labels));
      return found?.includes(`namespace="${NAMESPACE}",name="${NAME}"`) ? Number(found.split(' ').at(-1)) : Number.NaN;
    };
    assert.ok((await line('cpu_usage_seconds_total')) > 0.1);
    assert.ok((await line('vcpu_seconds_total', 'id="0",state="running"')) > 0.1);
    assert.equal(await line('memory_domain_bytes'), 160 * 1024 * 1024);
    assert.ok((await line('memory_resident_bytes')) > 16 * 1024 * 1024);
    assert.ok((await line('storage_read_traffic_bytes_total', 'drive="root"')) > 1024 * 1024);
    assert.ok((await line('network_transmit_bytes_total', 'interface="default"')) > 100);
    await eventually('what the balloon driver says', async () => (await line('memory_unused_bytes')) > 1024 * 1024);
  });

  await t.test('freeze and unfreeze', async () => {
    const body = new TextEncoder().encode('{"unfreezeTimeout":"5m0s"}');
    assert.equal(
      (await ask('PUT', 'freeze', { body: new TextEncoder().encode('{"unfreezeTimeout":"x"}') })).status,
      400,
    );
    await byAgent(board, NAME, 'mke2fs /dev/vdb && mkdir -p /mnt && mount -t ext4 /dev/vdb /mnt');
    const frozen = await ask('PUT', 'freeze', { body });
    assert.equal(frozen.status, 200, JSON.stringify(frozen.json));
    const agent = await guestAgentOf(board, NAME);
    const isFrozen = (): Promise<boolean> =>
      agent.converse(async (say) => (await say('guest-fsfreeze-status')) === 'frozen');
    assert.equal(await isFrozen(), true);
    await board.until(NAME, 'frozen', (vmi) => vmi.status?.fsFreezeStatus === 'frozen');
    assert.equal((await ask('PUT', 'unfreeze')).status, 200);
    await board.until(NAME, 'thawed', (vmi) => vmi.status?.fsFreezeStatus === undefined);
    // The node agent ends while the guest is frozen: it is thawed in time all the same.
    const short = new TextEncoder().encode('{"unfreezeTimeout":"3s"}');
    assert.equal((await ask('PUT', 'freeze', { body: short })).status, 200);
    await board.restartAgent(async () => {
      assert.equal(await isFrozen(), true);
      await eventually('thawed without a node agent', async () => !(await isFrozen()));
      assert.equal(await byAgent(board, NAME, 'echo written >/mnt/file && sync && cat /mnt/file'), 'written\n');
    });
  });

  await t.test('the time, once it goes on', async () => {
    await byAgent(board, NAME, 'date -s @1000000000');
    assert.equal((await ask('PUT', 'pause')).status, 200);
    assert.equal((await ask('PUT', 'unpause')).status, 200);
    await eventually('the time of its host', async () => {
      const seconds = Number(await byAgent(board, NAME, 'date +%s'));
      return Math.abs(seconds - Date.now() / 1000) < 60;
    });
  });

  await t.test('screen: one client at a time, and a picture', async () => {
    const first = await board.connect(`${NAME}/vnc`);
    const closed = new Promise<void>((resolve) => first.onClose(() => resolve()));
    await collect(first).has('RFB 003.');
    const second = await board.connect(`${NAME}/vnc`);
    await collect(second).has('RFB 003.');
    await closed;
    const third = await ask('GET', 'vnc', { query: 'preserveSession=true' });
    assert.equal(third.status, 400, 'no WebSocket');
    second.close();
    const picture = await ask('GET', 'vnc/screenshot', { query: 'moveCursor=true' });
    assert.equal(picture.status, 200, JSON.stringify(picture.json));
    const png = Buffer.from(picture.bytes);
    assert.equal(png.subarray(1, 4).toString(), 'PNG');
    assert.ok(png.readUInt32BE(16) >= 320 && png.readUInt32BE(20) >= 200);
  });

  // S-1270
  await t.test('readiness by pings of the agent', async () => {
    const isReady = ({ status }: VirtualMachineInstance): boolean =>
      status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;
    await board.until(NAME, 'ready', isReady);
    await inGuest(board, NAME, 'killall -STOP qemu-ga');
    await board.until(NAME, 'not ready', (vmi) => !isReady(vmi));
    await inGuest(board, NAME, 'killall -CONT qemu-ga');
    await board.until(NAME, 'ready again', isReady);
  });

  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: NAME });
  await eventually('gone', async () => (await board.vmi(NAME).catch(() => undefined)) === undefined);
});
