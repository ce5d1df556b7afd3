/** The screens of real guests, as a viewer and the command line have them: through the API, over TLS. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { openWorkspace, type Started } from '../cli/workspace.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, whyNoFirmware, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const noFirmware = whyNoFirmware();

/** A viewer's end of the RFB protocol (RFC 6143, without a password), as far as the size of the screen. */
async function handshake(line: Socket): Promise<{ readonly width: number; readonly height: number }> {
  let read = Buffer.alloc(0);
  line.on('data', (chunk: Buffer) => {
    read = Buffer.concat([read, chunk]);
  });
  const take = async (bytes: number): Promise<Buffer> => {
    while (read.length < bytes) {
      if (line.destroyed || line.readableEnded) throw new Error(`the line ended after ${read.length} bytes`);
      await Promise.race([once(line, 'data'), once(line, 'close')]);
    }
    const taken = read.subarray(0, bytes);
    read = read.subarray(bytes);
    return taken;
  };
  assert.equal((await take(12)).toString(), 'RFB 003.008\n');
  line.write('RFB 003.008\n');
  const [types = 0] = await take(1);
  assert.ok((await take(types)).includes(1), 'a screen without a password of its own: the API has asked who it is');
  line.write(Uint8Array.of(1));
  assert.equal((await take(4)).readUInt32BE(), 0);
  line.write(Uint8Array.of(1)); // shared: who has the screen is not for the viewer to say
  const server = await take(24);
  return { width: server.readUInt16BE(0), height: server.readUInt16BE(2) };
}

async function view(proxy: Started): Promise<Socket> {
  const [, host = '', port = ''] = /^(.*):(\d+) is the screen of default\/\S+$/.exec(await proxy.line(/screen/)) ?? [];
  const line = connect({ host, port: Number(port) });
  line.on('error', () => {});
  await once(line, 'connect');
  return line;
}

// S-1224: `coracle vnc` is a viewer's port: the next viewer takes the screen over, one with `--preserve-session` is refused in
//   upstream's words; `coracle screenshot` writes a PNG of the same size that others cannot read.
// S-1226: Guests start with each display adapter of KubeVirt (vga, virtio, bochs, cirrus, ramfb) and a tablet of either bus.
// S-1225: A guest that boots by UEFI shows its firmware on the adapter that upstream gives it.
// Compat KubeVirt's API, P1, yes: vnc: one owner, `preserveSession`; vnc/screenshot; display adapters
test('a viewer has the screen of a guest, another takes it over, and it is photographed', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  await importTinyGuest(at.data);
  const own = (name: string, ...argv: string[]) => [name, '--data-dir', at.data, ...argv];
  const made = await at.run(own('create', 'web', '--image', 'tiny', '--wait'));
  assert.equal(made.code, 0, made.stderr);

  const proxy = at.start(own('vnc', 'web'));
  const first = await view(proxy);
  const { width, height } = await handshake(first);
  assert.ok(width >= 320 && height >= 200, `${width} x ${height}`);

  const modest = at.start(own('vnc', 'web', '--preserve-session'));
  const refused = await view(modest);
  refused.resume();
  await once(refused, 'close');
  assert.match(modest.stderr(), /^the screen of default\/web: .*Active VNC connection\. Request denied\./m);
  assert.ok(!first.destroyed);

  const second = await view(proxy);
  const taken = once(first, 'close');
  assert.deepEqual(await handshake(second), { width, height });
  await taken;
  second.destroy();
  // The end of a session takes a moment to reach the guest.
  const third = await eventually('the screen is free', async () => {
    const line = await view(modest);
    return handshake(line).then(
      () => line,
      () => undefined,
    );
  });
  for (const { child, ended } of [proxy, modest]) {
    child.kill('SIGINT');
    assert.equal((await ended).code, 0);
  }
  third.destroy();

  const file = join(at.dir, 'screen.png');
  const shot = await at.run(own('screenshot', 'web', file, '--move-cursor'));
  assert.deepEqual(
    [shot.code, shot.stdout],
    [0, `${file} is the screen of default/web, ${width} x ${height}\n`],
    shot.stderr,
  );
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const png = readFileSync(file);
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  assert.ok(png.length > 500 && png.length < 3 * width * height, `${png.length} bytes`);

  await t.test('a guest that boots by UEFI', { ...(noFirmware && { skip: noFirmware }) }, async () => {
    const vm = JSON.parse((await at.kubectl(['get', 'vm', 'web', '-o', 'json'])).stdout);
    const { domain } = vm.spec.template.spec;
    domain.firmware = { bootloader: { efi: { secureBoot: false } } };
    const efi = { ...vm, metadata: { name: 'efi' }, status: undefined };
    const applied = await at.kubectl(['create', '-f', '-'], JSON.stringify(efi));
    assert.equal(applied.code, 0, applied.stderr);
    const picture = join(at.dir, 'efi.png');
    const isBochs = (argv: readonly string[]): boolean =>
      argv.some((word) => word.includes(at.dir)) && argv.some((word) => word.includes('"driver":"bochs-display"'));
    await eventually('QEMU with that adapter', async () => (await findProcesses(isBochs)).length === 1);
    // The firmware sets a mode of its own, which no text screen has.
    await eventually('the screen of the firmware', async () => {
      await setTimeout(1000);
      const { code, stdout } = await at.run(own('screenshot', 'efi', picture));
      const [, wide, high] = / (\d+) x (\d+)\n$/.exec(stdout) ?? [];
      return code === 0 && Number(wide) >= 800 && Number(high) >= 600 && readFileSync(picture).length > 2_000;
    });
    // Firmware that finds nothing to boot goes on looking.
    assert.equal((await at.run(own('pause', 'efi'))).code, 0);
  });

  await t.test('each adapter, with a tablet of either bus', async () => {
    const { spec } = JSON.parse((await at.kubectl(['get', 'vm', 'web', '-o', 'json'])).stdout);
    const types = ['vga', 'virtio', 'bochs', 'cirrus', 'ramfb'];
    const items = types.map((type, i) => {
      const vmi = structuredClone(spec.template.spec);
      vmi.domain.devices.video = { type };
      vmi.domain.devices.inputs = [{ name: 'pointer', type: 'tablet', bus: i % 2 === 0 ? 'usb' : 'virtio' }];
      // Before its first instruction: it takes no processor, and its screen is black.
      const metadata = { name: type, namespace: 'default' };
      return {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata,
        spec: { ...vmi, startStrategy: 'Paused' },
      };
    });
    const created = await at.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    assert.equal(created.code, 0, created.stderr);
    const running = types.map((type) => `vmi/${type}`);
    await at.kubectl(['wait', '--timeout=120s', '--for=jsonpath={.status.phase}=Running', ...running]);
    for (const type of types) {
      const picture = join(at.dir, `${type}.png`);
      await eventually(`the screen of ${type}`, async () => {
        const { code, stderr } = await at.run(own('screenshot', type, picture, '--move-cursor'));
        return code === 0 || Promise.reject(new Error(stderr));
      });
    }
    const said = await at.kubectl(['get', 'events', '-o', 'jsonpath={.items[*].message}']);
    assert.doesNotMatch(said.stdout, /video type/, 'none stands for another');
  });

  const dark = JSON.parse((await at.kubectl(['get', 'vm', 'web', '-o', 'json'])).stdout);
  dark.spec.template.spec.domain.devices.autoattachGraphicsDevice = false;
  dark.spec.template.spec.startStrategy = 'Paused';
  const blind = { ...dark, metadata: { name: 'blind' }, status: undefined };
  assert.equal((await at.kubectl(['create', '-f', '-'], JSON.stringify(blind))).code, 0);
  await at.kubectl(['wait', '--timeout=120s', '--for=jsonpath={.status.printableStatus}=Paused', 'vm/blind']);
  assert.match((await at.run(own('list'))).stdout, /^blind +Paused/m);
  for (const argv of [own('vnc', 'blind'), own('screenshot', 'blind', file)])
    assert.match(
      (await at.run(argv)).stderr,
      /^error: default\/blind has no screen: its autoattachGraphicsDevice is false\n$/,
    );
  assert.equal((await at.run(own('down', '--force'))).code, 0);
});
