/** A Debian as people run it: systemd, cloud-init and guest agent on a disk that lasts, beside a tiny guest. */
// test:full: builds a Debian from its packages and boots it three times
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { DEBIAN_GUEST_PROGRAMS, ensureDebianGuest } from '../../tools/debian-guest/debian-guest.ts';
import { ensurePrograms, KUBECTL_PROGRAM } from '../../tools/setup/host-packages.ts';
import { openWorkspace } from '../cli/workspace.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, whyNoGuests } from '../testkit/tiny-guest.ts';

const missing = ensurePrograms({ ...DEBIAN_GUEST_PROGRAMS, ...KUBECTL_PROGRAM, ssh: 'openssh-client' }, () => {});
const why = whyNoGuests() ?? (missing.length > 0 ? `not on this host: ${missing.join(', ')}` : undefined);
/** A boot takes 45 s alone on two cores without KVM, and many times that beside other tests. */
const BOOT_MS = 900_000;
/** Between two questions: a program that starts takes a second of processor time, which the guest needs for its boot. */
const PAUSE_MS = 5_000;

/** Asks again until the answer is something, but seldom. */
const atLast = <T>(what: string, read: () => Promise<T | false>): Promise<T> => {
  let asked = false;
  return eventually(
    what,
    async () => {
      if (asked) await setTimeout(PAUSE_MS);
      asked = true;
      return read();
    },
    BOOT_MS,
  );
};

// S-1345: A Debian cloud guest of two commands: cloud-init gives name, user and keys, systemd comes up whole, its agent reports it, and
//   it reaches another machine by the name of a Service.
// S-1346: What such a guest has written is there after a restart; `coracle stop` shuts it down, and it is not killed.
test('a Debian with systemd, cloud-init and guest agent lives as on a cluster', {
  timeout: 3_600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const disk = await ensureDebianGuest({ signal: t.signal, log: (line) => t.diagnostic(line) });
  const at = openWorkspace(t);
  await importTinyGuest(at.data);
  // Not `run`, whose limit is that of a short command.
  const ended = (argv: readonly string[]) => at.start([argv[0]!, '--data-dir', at.data, ...argv.slice(1)]).ended;
  const ok = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await ended(argv);
    assert.equal(code, 0, `${argv.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };
  // cloud-init starts sshd again at each boot, also after it has answered: on a busy machine it is away for minutes.
  const inDebian = async (...command: string[]): Promise<string> => {
    const { code, stdout, stderr } = await atLast('ssh', async () => {
      const answer = await ended(['ssh', 'deb', '--', ...command]);
      if (answer.code === 255) throw new Error(answer.stderr);
      return answer;
    });
    assert.equal(code, 0, `${command.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };

  await ok('create', 'pages', '--image', 'tiny', '--wait');
  await ok('image', 'import', 'debian', disk);
  await ok('create', 'deb', '--image', 'localhost/debian', '--memory', '512Mi', '--disk', '3Gi');
  await atLast('its name', async () => (await inDebian('hostname')) === 'deb\n');
  assert.match(await inDebian('cloud-init', 'status', '--wait'), /status: done/);
  assert.match(await inDebian('systemctl', 'is-system-running', '--wait', '||', 'systemctl', '--failed'), /^running$/m);

  const vmi = async (path: string): Promise<string> => {
    const { code, stdout, stderr } = await at.kubectl(['get', 'vmi', 'deb', '-o', `jsonpath={${path}}`]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  await atLast('the agent', async () => /Debian GNU\/Linux/.test(await vmi('.status.guestOSInfo.name')));
  assert.equal(await vmi('.status.conditions[?(@.type=="AgentConnected")].status'), 'True');
  const mac = await vmi('.status.interfaces[0].mac');

  await ok('expose', 'pages', '--port', '80');
  await atLast('the other machine', async () => {
    return /^hostname: pages$/m.test(await inDebian('curl', '-sS', '--max-time', '10', 'http://pages.default.svc/'));
  });

  const body = join(at.dir, 'freeze');
  writeFileSync(body, '{"unfreezeTimeout":"60s"}');
  const path = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/deb';
  for (const [verb, state] of [
    ['freeze', 'frozen'],
    ['unfreeze', ''],
  ] as const) {
    const asked = await at.kubectl(['replace', '--raw', `${path}/${verb}`, '-f', body]);
    assert.equal(asked.code, 0, asked.stderr);
    await atLast(verb, async () => (await vmi('.status.fsFreezeStatus')) === state);
  }

  const before = await inDebian('cat', '/etc/machine-id', '/proc/sys/kernel/random/boot_id');
  await inDebian('sh', '-c', '"echo kept > kept && sync"');
  await ok('restart', 'deb');
  const after = await atLast('a second boot', async () => {
    const ids = await inDebian('cat', '/etc/machine-id', '/proc/sys/kernel/random/boot_id');
    return ids !== before && ids;
  });
  assert.equal(after.split('\n')[0], before.split('\n')[0]);
  assert.match(await inDebian('cloud-init', 'status', '--wait'), /done/);
  assert.equal(await inDebian('cat', 'kept'), 'kept\n');
  assert.equal(await vmi('.status.interfaces[0].mac'), mac);

  await ok('stop', 'deb', '--wait');
  await ok('start', 'deb');
  // Debian writes this at its end, and only then.
  assert.match(await inDebian('last', '-x', '-n', '8', 'shutdown'), /shutdown system down/);
  await ok('down', '--force');
});
