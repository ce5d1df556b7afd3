import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inflateSync } from 'node:zlib';
import type { AskGuestAgent, GuestAgent } from '../../qmp/guest-agent.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import { pngOfPixmap } from '../requests/png.ts';
import { unfreezeTimeout } from './freeze.ts';
import { queryAll, readFilesystems, readInterfaces, readOsInfo, readUsers } from './guest-agent-facts.ts';

test('answers of the agent in the words of the API', () => {
  assert.deepEqual(
    readOsInfo({
      name: 'Debian',
      'kernel-release': '6.1',
      'pretty-name': 'Debian 12',
      'version-id': '12',
      id: 'debian',
    }),
    { name: 'Debian', kernelRelease: '6.1', prettyName: 'Debian 12', versionId: '12', id: 'debian' },
  );
  const address = { 'ip-address': '10.0.2.15', 'ip-address-type': 'ipv4', prefix: 24 };
  assert.deepEqual(
    readInterfaces([
      { name: 'lo', 'hardware-address': '00:00:00:00:00:00', 'ip-addresses': [] },
      { name: 'eth0', 'hardware-address': '02:00:00:00:00:0A', 'ip-addresses': [address] },
      { name: 'tun0' },
    ]),
    [
      { name: 'eth0', mac: '02:00:00:00:00:0a', addresses: [{ address: '10.0.2.15', type: 'ipv4' }] },
      { name: 'tun0', mac: '', addresses: [] },
    ],
  );
  assert.deepEqual(
    readUsers([
      { user: 'root', 'login-time': 12.5 },
      { user: 'x', domain: 'D' },
    ]),
    [
      { userName: 'root', loginTime: 12.5 },
      { userName: 'x', domain: 'D' },
    ],
  );
  assert.deepEqual(
    readFilesystems([
      {
        name: 'vda1',
        mountpoint: '/',
        type: 'ext4',
        'used-bytes': 1,
        'total-bytes': 2,
        disk: [{ serial: 's', 'bus-type': 'virtio' }],
      },
    ]),
    [
      {
        diskName: 'vda1',
        mountPoint: '/',
        fileSystemType: 'ext4',
        usedBytes: 1,
        totalBytes: 2,
        disk: [{ serial: 's', busType: 'virtio' }],
      },
    ],
  );
});

test('a guest that says odd things is cut short', () => {
  for (const odd of [null, 1, 'x', [], {}, [[]], [null], { name: {} }]) {
    assert.deepEqual(readOsInfo(odd), {});
    assert.deepEqual(readInterfaces(odd), []);
    for (const read of [readUsers, readFilesystems]) assert.ok(Array.isArray(read(odd)));
  }
  assert.equal(readOsInfo({ name: 'n'.repeat(9999) }).name?.length, 256);
  assert.equal(readUsers(Array.from({ length: 9999 }, () => ({ user: 'u' }))).length, 256);
  assert.deepEqual(readUsers([{ user: 'u', 'login-time': Number.NaN }]), [{ userName: 'u' }]);
});

/** Answers from a table; what is not in it is refused. */
function agentOf(answers: Record<string, unknown>, asked: string[] = []): GuestAgent {
  const ask: AskGuestAgent = async (command) => {
    asked.push(command);
    if (Object.hasOwn(answers, command)) return answers[command];
    throw new QmpError('refused', `${command}: not found`);
  };
  return { converse: (talk) => talk(ask) };
}

test('guestosinfo: what the agent cannot tell is left out', async () => {
  const info = { version: '7.2', supported_commands: [{ name: 'guest-ping', enabled: true }, { name: 'b' }] };
  assert.deepEqual(await agentOf({ 'guest-info': info }).converse(queryAll), {
    kind: 'VirtualMachineInstanceGuestAgentInfo',
    apiVersion: 'v1',
    guestAgentVersion: '7.2',
    supportedCommands: [{ name: 'guest-ping', enabled: true }, { name: 'b' }],
    os: {},
    fsInfo: { disks: [] },
  });
  const more = await agentOf({
    'guest-info': info,
    'guest-get-host-name': { 'host-name': 'h' },
    'guest-get-timezone': { zone: 'UTC', offset: 0 },
    'guest-fsfreeze-status': 'frozen',
    'guest-get-users': [{ user: 'root' }],
  }).converse(queryAll);
  assert.deepEqual(
    [more['hostname'], more['timezone'], more['fsFreezeStatus'], more['userList']],
    ['h', 'UTC, 0', 'frozen', [{ userName: 'root' }]],
  );
});

test('unfreezeTimeout: a duration as Go writes it', () => {
  const of = (body: string): number => unfreezeTimeout(new TextEncoder().encode(body));
  const cases: [string, number][] = [
    ['', 0],
    ['{}', 0],
    ['null', 0],
    ['{"unfreezeTimeout":"0s"}', 0],
    ['{"unfreezeTimeout":"5m0s"}', 300],
    ['{"unfreezeTimeout":"1h1m1.5s"}', 3661.5],
    ['{"unfreezeTimeout":"250ms"}', 0.25],
  ];
  for (const [body, seconds] of cases) assert.equal(of(body), seconds, body);
  for (const bad of ['{', '{"unfreezeTimeout":5}', '{"unfreezeTimeout":"soon"}', '{"unfreezeTimeout":"5m!"}'])
    assert.throws(() => of(bad), { code: 400 }, bad);
});

test('pngOfPixmap(): the pixels, row by row', async () => {
  const pixels = Uint8Array.of(255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30);
  const png = Buffer.from(await pngOfPixmap(Buffer.concat([Buffer.from('P6\n2 2\n255\n'), pixels])));
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [2, 2]);
  const at = png.indexOf('IDAT');
  const rows = inflateSync(png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4)));
  assert.deepEqual([...rows], [0, ...pixels.subarray(0, 6), 0, ...pixels.subarray(6)]);
  await assert.rejects(pngOfPixmap(Buffer.from('P6\n2 2\n255\nxx')), /no pixmap/);
});
