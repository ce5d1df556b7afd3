/** From nothing to a shell in a guest, and what else the command line does with a machine, on a real guest. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Event } from '../../packages/apimachinery/src/types/types.ts';
import { isInstalled } from '../../tools/setup/host-packages.ts';
import { openWorkspace } from '../cli/workspace.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, whyNoGuests } from '../testkit/tiny-guest.ts';

const why =
  whyNoGuests() ?? (isInstalled('ssh') && isInstalled('ssh-keygen') ? undefined : 'not on this host: openssh-client');

// S-1144: `coracle create --image tiny` starts a control plane where none runs and says so; then `coracle ssh` gives a shell, with a
//   key that is made where the user has none.
// S-1146: `coracle status` shows machines with state, address, node, uptime and what each takes on the disk, images, the space that
//   disks take and what is left.
// S-1145: `coracle cp`, `port-forward`, `logs`, `top`, `stop`, `start`, `restart` and `list` work on a running machine.
// S-1686: `coracle cp` into a guest whose disk is full says so, that the copy is not complete, and what to do.
// S-1629: The first machine of a control plane that `create` has started has no warning among its events.
test('two commands to a shell, and the others on the same guest', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  await importTinyGuest(at.data);
  const coracle = (...argv: string[]) => at.run([argv[0]!, '--data-dir', at.data, ...argv.slice(1)]);
  const ok = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await coracle(...argv);
    assert.equal(code, 0, `${argv.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };
  const made = await coracle('create', 'web', '--image', 'tiny', '--wait');
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stderr, /^no control plane runs in \S+: starting one \(coracle down stops it\)\nready in /m);
  assert.match(
    made.stdout,
    /^default\/web created {2}\d+\.\d s\n[\s\S]*default\/web Running {2}\d+\.\d s\ndefault\/web answers ssh {2}\d+\.\d s\n$/,
  );
  const events = JSON.parse((await at.kubectl(['get', 'events', '-o', 'json'])).stdout).items as Event[];
  assert.ok(
    events.some(
      ({ reason, involvedObject }) => `${involvedObject.kind} ${reason}` === 'VirtualMachineInstance Started',
    ),
  );
  assert.deepEqual(
    events.filter(({ type }) => type !== 'Normal').map(({ reason, message }) => [reason, message]),
    [],
  );
  assert.equal(await ok('ssh', 'web', '--', 'id', '-un'), 'tiny\n');
  assert.equal(await ok('ssh', 'root@vm/web', '--', 'hostname;', 'id', '-un'), 'web\nroot\n');
  const seven = await coracle('ssh', 'web', '--', 'exit', '7');
  assert.equal(seven.code, 7, seven.stderr);

  const file = join(at.dir, 'file with blanks');
  writeFileSync(file, Buffer.alloc(300_000, 'x'));
  await ok('cp', file, 'web:copied');
  await ok('cp', 'web:copied', join(at.dir, 'back'));
  assert.deepEqual(readFileSync(join(at.dir, 'back')), readFileSync(file));
  await ok('ssh', 'web', '--', 'cat', '/dev/zero', '>', 'ballast', '2>/dev/null', '||', 'true');
  const full = await coracle('cp', file, 'web:again');
  assert.equal(full.code, 1);
  assert.match(full.stderr, /^error: no space is left for again in default\/web \(\d+ MiB in all\): the copy is not /m);
  await ok('ssh', 'web', '--', 'rm', 'ballast');
  await ok('cp', file, 'web:again');

  const forward = at.start(['port-forward', '--data-dir', at.data, 'web', ':8080']);
  const [, address] = /^(\S+) is port 8080 of default\/web$/.exec(await forward.line(/is port 8080/)) ?? [];
  assert.match(await (await fetch(`http://${address}/`)).text(), /^hostname: web\n/);
  forward.child.kill('SIGINT');
  assert.equal((await forward.ended).code, 0);

  assert.match(await ok('logs', 'web'), /hello from web/);
  assert.match(await ok('list'), /^web +Running +\d+\.\S+ +\S+ +\d+[smh]/m);
  const status = await ok('status');
  assert.match(status, /^images +1, \d+ MiB$/m);
  assert.match(status, /^disks +[1-9]\S* \w+$/m);
  assert.match(status, /^default +web +Running +\d+\.\S+ .* [1-9][\d.]* [KM]iB$/m);
  assert.match(await ok('ip', 'web'), /^\d+\.\d+\.\d+\.\d+\n$/);
  const [usage] = JSON.parse(await ok('top', 'vm/web.default', '--json'));
  assert.ok(usage.name === 'web' && usage.memoryBytes > 32 * 1024 * 1024 && usage.readBytes > 0, JSON.stringify(usage));
  assert.match(await ok('why', 'web'), /^default\/web runs/);
  await ok('pause', 'web');
  // Its state tells of it a moment later.
  const paused = /is paused: .*\nnext: coracle unpause web -n default\n/;
  await eventually('it is said to be paused', async () => paused.test((await coracle('why', 'web')).stdout));
  assert.match((await coracle('ssh', 'web', '--', 'true')).stderr, /default\/web is paused: .*\(coracle unpause web/);
  await ok('unpause', 'web');

  // Its disk is made anew, and with it the host key that ssh has seen.
  await ok('stop', 'web', '--wait', '--force');
  assert.match(
    (await coracle('ssh', 'web', '--', 'true')).stderr,
    /default\/web is stopped \(start it: coracle start web/,
  );
  assert.match((await coracle('why', 'web')).stdout, /is stopped.*\nnext: coracle start web -n default\n/);
  await ok('start', 'web', '--wait');
  assert.equal((await coracle('start', 'web')).stderr, 'error: default/web: VM is already running\n');
  assert.equal(await ok('ssh', 'web', '--', 'cat', 'copied', '2>/dev/null', '||', 'echo', 'anew'), 'anew\n');
  await ok('delete', 'web');
  await eventually('no machine is left', async () => /no machines/.test(await ok('list')));
  await ok('down', '--force');
});

// S-1147: `coracle create -p HOST:GUEST` gives a guest a port of 127.0.0.1, which comes back with each start; what is not had is said.
// S-1148: `coracle create --disk SIZE` makes a disk that lasts: what a guest has written is there after a stop and a start.
test('a published port and a disk that lasts are there again after a stop and a start', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  await importTinyGuest(at.data);
  const coracle = (...argv: string[]) => at.run([argv[0]!, '--data-dir', at.data, ...argv.slice(1)]);
  const ok = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await coracle(...argv);
    assert.equal(code, 0, `${argv.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };
  const port = await freePort();
  const made = await coracle('create', 'db', '--image', 'tiny', '--disk', '96Mi', '-p', `${port}:8080`, '--wait');
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stderr, /starting one, which gives guests ports of this host \(coracle down stops it\)/);
  const page = async () => (await fetch(`http://127.0.0.1:${port}/`)).text();
  await eventually('the port', async () => /^hostname: db$/m.test(await page()));
  // Behind the end of the image, where no file system is.
  const at90 = ['bs=1M', 'count=1', '2>/dev/null'];
  await ok(
    'ssh',
    'root@db',
    '--',
    'echo',
    'kept',
    '|',
    'dd',
    'of=/dev/vda',
    'seek=90',
    'conv=sync,notrunc',
    ...at90,
    '&&',
    'sync',
  );
  await ok('stop', 'db', '--wait');
  await ok('start', 'db', '--wait');
  await eventually('the port again', async () => /^hostname: db$/m.test(await page()));
  // The tiny guest has its host key in memory alone.
  rmSync(join(at.data, 'ssh/known-hosts'), { recursive: true });
  assert.equal(
    await ok('ssh', 'root@db', '--', 'dd', 'if=/dev/vda', 'skip=90', ...at90, '|', 'head', '-c', '4'),
    'kept',
  );
  await ok('down', '--force');
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
