// Boots the built guest for real, on the emulated CPU, and looks at it from outside: serial line, HTTP, QMP.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isoImage } from '../../packages/node-agent/src/disk/iso-image.ts';
import { eventually } from '../../test/testkit/eventually.ts';
import { isInstalled } from '../setup/host-packages.ts';
import { ensureGuest, type GuestBuild } from './build-guest.ts';
import { run } from './process.ts';

const UUID = '5d307ca9-b3ef-428c-8861-06e72d69f223';
const USER_DATA = `#cloud-config
# a comment
hostname: from-user-data
password: "s3cret: word" # comment after it
chpasswd: { expire: False }
ssh_pwauth: True
packages:
  - nano
coracle_heartbeat: true
write_files:
  - path: /etc/motd-test
    permissions: '0640'
    content: |
      first line
        second: indented
  - { path: /ignored }
  - content: aGVsbG8=
    encoding: b64
    path: /root/decoded
runcmd:
- echo plain "$((40 + 2))" words: kept
- [ sh, -c, 'echo "bracketed, $1"', x, "it's" ]
- - echo
  - nested  list
- - printf
  - '%s\\n'
  - 'a ] b'
- |
  for i in 1 2; do
    echo block $i
  done
- cat /etc/motd-test /root/decoded; echo
- stat -c 'mode %a' /etc/motd-test
`;

let guest: GuestBuild;
let dir: string;

before(async () => {
  guest = await ensureGuest();
  dir = await mkdtemp(join(tmpdir(), 'guest-test-'));
});

after(() => rm(dir, { recursive: true, force: true }));

// S-079
test('a cached guest is found at once, under the same digest', async () => {
  assert.deepEqual(await ensureGuest(), guest);
  assert.match(guest.digest, /^[0-9a-f]{64}$/);
  assert.ok((await stat(guest.disk)).size < 25 * 1024 * 1024);
});

// S-079: The tiny guest boots by BIOS or by kernel, reads NoCloud data, serves HTTP, answers ACPI power-off; it is
//   built once.
// S-1140: The tiny guest lets in by SSH who has a key of its cloud-init data, and nobody by password; scp works.
test('the disk boots by BIOS, applies cloud-config, serves HTTP and SSH and powers off when asked', {
  timeout: 180_000,
}, async (t) => {
  const key = join(dir, 'key');
  const hasSsh = isInstalled('ssh') && isInstalled('ssh-keygen');
  if (hasSsh)
    for (const path of [key, `${key}-other`]) await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
  const keys = hasSsh ? `ssh_authorized_keys:\n  - ${(await readFile(`${key}.pub`, 'utf8')).trim()}\n` : '';
  const seed = await seedImage('disk', { 'local-hostname': 'from-meta-data', 'instance-id': 'i-1' }, USER_DATA + keys);
  const [port, sshPort] = [await freePort(), await freePort()];
  const forwards = `hostfwd=tcp:127.0.0.1:${port}-:80,hostfwd=tcp:127.0.0.1:${sshPort}-:22`;
  const machine = await startMachine(t.signal, [
    ...['-drive', `file=${guest.disk},format=qcow2,if=none,id=root,snapshot=on`],
    ...['-device', 'virtio-blk-pci,drive=root,bootindex=1'],
    ...['-drive', `file=${seed},format=raw,if=none,id=seed,read-only=on`, '-device', 'virtio-blk-pci,drive=seed'],
    ...['-netdev', `user,id=net,${forwards}`, '-device', 'virtio-net-pci,netdev=net,romfile='],
  ]);
  try {
    await machine.until('heartbeat ');
    await machine.until('cloud-init: done');
    const text = machine.output();
    for (const line of [
      '------------ Coracle tiny guest ------------',
      'hostname: from-user-data',
      `uuid: ${UUID}`,
      'serial: SER-42',
      'address: 10.0.2.15',
      'hello from from-user-data',
      'plain 42 words: kept',
      "bracketed, it's",
      'nested  list',
      'a ] b',
      'block 1',
      'block 2',
      'first line',
      '  second: indented',
      'hello',
      'mode 640',
      'cloud-init: done',
    ]) {
      assert.ok(
        text.split(/\r?\n/).some((l) => l.includes(line)),
        `no "${line}" in:\n${text}`,
      );
    }
    const page = await (await fetch(`http://127.0.0.1:${port}/`)).text();
    assert.equal(page, `hostname: from-user-data\nuuid: ${UUID}\n`);
    const beat = async () => Number(await (await fetch(`http://127.0.0.1:${port}/heartbeat`)).text());
    const first = await beat();
    await machine.until('heartbeat ', 2);
    await eventually('the heartbeat goes on', async () => (await beat()) > first);

    await machine.until('login: ');
    await machine.login('tiny', 's3cret: word');
    machine.type('echo I am $((1 + 1))-$(id -un); grep -o edd=off /proc/cmdline\n');
    await machine.until('I am 2-tiny');
    // By the request of the boot record, not by SYSLINUX.
    await machine.until('edd=off', 2);

    if (hasSsh) await t.test('ssh and scp', () => checkSsh(sshPort, { key, signal: t.signal }));
    else t.diagnostic('not on this host: openssh-client');

    machine.qmp('system_powerdown');
    await machine.exited;
    assert.match(machine.output(), /The guest is going down: power off/);
  } finally {
    await machine.kill();
  }
});

// S-1681: The tiny guest boots by BIOS from a SATA disk too, which its boot record cannot read by itself.
test('the disk boots by SYSLINUX where it is no virtio disk', { timeout: 180_000 }, async (t) => {
  const machine = await startMachine(t.signal, [
    ...['-drive', `file=${guest.disk},format=qcow2,if=none,id=root,snapshot=on`, '-device', 'ide-hd,drive=root'],
  ]);
  try {
    await machine.until('login: ');
    await machine.login('root');
    machine.type('echo mode: $(grep -c edd=off /proc/cmdline)\n');
    await machine.until('mode: 0');
  } finally {
    await machine.kill();
  }
});

/** That `key` opens both accounts to ssh and scp, and another key none. */
async function checkSsh(port: number, { key, signal }: { key: string; signal: AbortSignal }): Promise<void> {
  const options = (identity: string) => [
    ...['-F', 'none', '-i', identity, '-o', 'BatchMode=yes', '-o', 'IdentitiesOnly=yes', '-o', 'ConnectTimeout=20'],
    ...['-o', 'StrictHostKeyChecking=no', '-o', `UserKnownHostsFile=${join(dir, 'known')}`],
  ];
  await hostKeyAt(port, signal);
  for (const user of ['root', 'tiny']) {
    const said = await run('ssh', [...options(key), '-p', String(port), `${user}@127.0.0.1`, 'id -un; hostname']);
    assert.equal(said.toString(), `${user}\nfrom-user-data\n`);
  }
  await assert.rejects(
    run('ssh', [...options(`${key}-other`), '-p', String(port), 'root@127.0.0.1', 'true']),
    /Permission denied \(publickey\)/,
  );
  await run('scp', [...options(key), '-P', String(port), `${key}.pub`, 'tiny@127.0.0.1:copied']);
  await run('scp', [...options(key), '-P', String(port), 'tiny@127.0.0.1:copied', join(dir, 'back')]);
  assert.deepEqual(await readFile(join(dir, 'back')), await readFile(`${key}.pub`));
}

/** Once the SSH server answers: it comes up beside the login, and QEMU takes connections before it. */
async function hostKeyAt(port: number, signal: AbortSignal): Promise<string> {
  for (;;) {
    const scan = ['-T', '30', '-t', 'ed25519', '-p', String(port), '127.0.0.1'];
    const said = await run('ssh-keyscan', scan).catch(() => Buffer.from(''));
    const key = said.toString().trim().split(' ').at(-1);
    if (key) return key;
    signal.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

// S-1409: The tiny guest keeps its SSH host key on the disk that it boots from, over restarts, also when it was killed; another
//   machine with a copy of that disk makes a key of its own.
test('the host key lasts with the disk, one for each machine', { timeout: 280_000 }, async (t) => {
  if (!isInstalled('ssh-keyscan')) return t.skip('not on this host: openssh-client');
  const disk = join(dir, 'lasting.qcow2');
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', guest.disk, disk]);
  const hostKey = async (uuid: string): Promise<string> => {
    const port = await freePort();
    const machine = await startMachine(t.signal, [
      // By its kernel, but as if by the boot loader of the disk.
      ...['-kernel', guest.kernel, '-initrd', guest.initrd, '-append', 'console=ttyS0 BOOT_IMAGE=vmlinuz'],
      ...['-drive', `file=${disk},format=qcow2,if=virtio,cache=writethrough`],
      ...['-smbios', `type=1,uuid=${uuid}`],
      ...['-netdev', `user,id=net,hostfwd=tcp:127.0.0.1:${port}-:22`, '-device', 'virtio-net-pci,netdev=net,romfile='],
    ]);
    try {
      await machine.until('login: ');
      return await hostKeyAt(port, t.signal);
    } finally {
      await machine.kill();
    }
  };
  const other = UUID.replace('5d30', '5d31');
  const [first, copy, again] = [await hostKey(UUID), await hostKey(other), await hostKey(UUID)];
  assert.match(first, /^AAAA/);
  assert.equal(again, first);
  assert.match(copy, /^AAAA/);
  assert.notEqual(copy, first);
});

// S-079
test('kernel and initrd boot without a disk and read a SATA seed', { timeout: 180_000 }, async (t) => {
  const script = '#!/bin/sh\necho "script ran as $(id -un)"\n';
  const seed = await seedImage('kernel', 'instance-id: i-2\nlocal-hostname: yaml-name\n', script);
  const machine = await startMachine(t.signal, [
    ...['-kernel', guest.kernel, '-initrd', guest.initrd, '-append', 'console=ttyS0'],
    ...['-drive', `file=${seed},format=raw,if=none,id=seed,read-only=on,media=cdrom`, '-device', 'ide-cd,drive=seed'],
    ...['-device', 'virtio-serial-pci', '-chardev', `socket,path=${join(dir, 'agent')},server=on,wait=off,id=agent`],
    ...['-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0'],
  ]);
  try {
    await machine.until('login: ');
    assert.match(machine.output(), /hello from yaml-name/);
    assert.match(machine.output(), /address: none/);
    assert.match(machine.output(), /script ran as root/);

    const agent = await lineSocket(join(dir, 'agent'));
    agent.socket.write('{"execute":"guest-get-host-name"}\n');
    assert.match(await agent.line((l) => l.includes('return')), /yaml-name/);
    agent.socket.destroy();

    await machine.login('root');
    machine.type('poweroff\n');
    await machine.exited;
  } finally {
    await machine.kill();
  }
});

async function seedImage(name: string, metaData: string | object, userData: string): Promise<string> {
  const text = typeof metaData === 'string' ? metaData : JSON.stringify(metaData);
  const files = new Map([
    ['meta-data', text],
    ['user-data', userData],
  ]);
  const image = join(dir, `${name}.iso`);
  await writeFile(image, isoImage({ label: 'cidata', files, fileMode: 0o600, date: new Date() }));
  return image;
}

interface Machine {
  output(): string;
  /** Waits until `text` came on the serial line `times` times. */
  until(text: string, times?: number): Promise<void>;
  type(text: string): void;
  login(user: string, password?: string): Promise<void>;
  qmp(command: string): void;
  readonly exited: Promise<unknown>;
  kill(): Promise<void>;
}

async function startMachine(signal: AbortSignal, args: string[]): Promise<Machine> {
  const control = join(dir, `qmp-${args.length}`);
  const child: ChildProcess = spawn(
    'qemu-system-x86_64',
    [
      ...['-machine', 'q35', '-accel', 'tcg', '-cpu', 'max', '-m', '128', '-nodefaults', '-display', 'none'],
      ...['-serial', 'stdio', '-qmp', `unix:${control},server=on,wait=off`, '-no-reboot'],
      ...['-smbios', `type=1,uuid=${UUID},serial=SER-42`],
      ...args,
    ],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  let output = '';
  let wake = () => {};
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-256 * 1024);
    wake();
  };
  child.stdout!.on('data', collect);
  child.stderr!.on('data', collect);
  const exited = new Promise((resolve) => child.once('exit', resolve)).then(() => wake());
  const stop = () => child.kill('SIGKILL');
  signal.addEventListener('abort', stop);
  const until = async (text: string, times = 1) => {
    while (output.split(text).length <= times) {
      assert.equal(child.exitCode ?? child.signalCode, null, `QEMU ended before "${text}":\n${output}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return {
    output: () => output,
    until,
    type: (text) => child.stdin!.write(text),
    login: async (user, password) => {
      child.stdin!.write(`${user}\n`);
      if (password !== undefined) {
        await until('Password: ');
        child.stdin!.write(`${password}\n`);
      }
      await until(`${user}@`);
    },
    qmp: (command) => {
      const socket = createConnection(control);
      socket.on('error', () => undefined);
      socket.end(`{"execute":"qmp_capabilities"}\n{"execute":"${command}"}\n`);
      socket.resume();
    },
    exited,
    kill: async () => {
      signal.removeEventListener('abort', stop);
      stop();
      await exited;
    },
  };
}

async function lineSocket(
  path: string,
): Promise<{ socket: Socket; line(wanted: (l: string) => boolean): Promise<string> }> {
  const socket = createConnection(path);
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  let text = '';
  return {
    socket,
    line: async (wanted) => {
      for await (const chunk of socket) {
        text += chunk;
        const found = text.split('\n').find(wanted);
        if (found) return found;
      }
      throw new Error(`the socket closed after: ${text}`);
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
