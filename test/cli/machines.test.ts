/** The commands about machines, as far as they go without a guest; test/node/machine-commands.test.ts has the rest. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { findCommand, readArguments } from '../../packages/coracle/src/cli/command.ts';
import { MACHINE_COMMANDS } from '../../packages/coracle/src/cli/machines/machine-commands.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Outcome, openWorkspace } from './workspace.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJnLpJDpDOhkSPbxSqmAXFsAbH7Q8pMZ7rKqPzLn3Sd me@here';
const refused = ({ code, stdout, stderr }: Outcome, want: number): string => {
  assert.deepEqual([code, stdout], [want, ''], stderr);
  assert.equal(stderr.trim().split('\n').length, 1, stderr);
  return stderr;
};

// S-1675: A machine is given the first key of the SSH agent where `~/.ssh` has none. A manifest that is printed without a key, or of an
//   image that `create` would put into the local store, is printed with a note that says so.
// S-1688: A key or a file of cloud-init that cannot be used is reported in one line: one that is missing, a directory, larger than
//   1 MiB, cut off, or readable by others where ssh would pass over it.
// S-1141: `coracle create --dry-run` prints a VirtualMachine in KubeVirt's own terms, with the user's own key, and makes nothing.
test('create --dry-run prints the manifest, and starts nothing', async (t) => {
  const at = openWorkspace(t);
  mkdirSync(join(at.home, '.ssh'));
  writeFileSync(join(at.home, '.ssh/id_ed25519.pub'), `${KEY}\n`);
  const argvOf = (argv: readonly string[]) => ['create', ...argv, '--data-dir', at.data];
  const create = (...argv: string[]) => at.run(argvOf(argv));
  const plain = await create('web', '--image', 'debian:13', '--cpus', '2', '--memory', '2g', '--dry-run');
  assert.deepEqual([plain.code, plain.stderr], [0, '']);
  const vm = parse(plain.stdout);
  const { domain, volumes } = vm.spec.template.spec;
  assert.deepEqual(
    [vm.kind, vm.metadata, vm.spec.runStrategy, vm.spec.preference],
    ['VirtualMachine', { name: 'web' }, 'Always', { name: 'debian' }],
  );
  assert.deepEqual([domain.cpu, domain.memory], [{ cores: 2 }, { guest: '2G' }]);
  assert.deepEqual(volumes[0], { name: 'root', dataVolume: { name: 'web-root' } });
  const sourceRef = { kind: 'DataSource', namespace: 'kubevirt-os-images', name: 'debian-13' };
  assert.deepEqual(vm.spec.dataVolumeTemplates[0].spec, { sourceRef, storage: {} });
  const userData = volumes[1].cloudInitNoCloud.userData;
  assert.match(userData, /^#cloud-config\n/);
  assert.deepEqual(parse(userData), { user: 'debian', ssh_authorized_keys: [KEY] });

  const lasting = await create('db', '--image', 'https://host/x.qcow2', '--disk', '20Gi', '--dry-run', '-o', 'json');
  const [template] = JSON.parse(lasting.stdout).spec.dataVolumeTemplates;
  assert.deepEqual(template.spec.source, { http: { url: 'https://host/x.qcow2' } });
  const local = await create('l', '--image', './x.qcow2', '--disk', '20Gi', '-n', 'shop', '--dry-run', '--json');
  const { registry } = JSON.parse(local.stdout).spec.dataVolumeTemplates[0].spec.source;
  assert.deepEqual(registry, { url: 'docker://localhost/vm/shop/l' });
  assert.match(local.stderr, /for this manifest alone: coracle image import vm\/shop\/l \.\/x\.qcow2\n$/);
  const typed = await create('t', '--image', 'tiny', '--instancetype', 'u1.small', '--ssh-key', 'none', '--explain');
  assert.match(typed.stdout, /^kubectl create -f - <<'EOF'\napiVersion: kubevirt\.io\/v1\n[\s\S]*\nEOF\n$/);
  assert.match(typed.stdout, /instancetype:\n {4}name: u1\.small/);
  assert.doesNotMatch(typed.stdout, /memory/);

  // Without a file the agent's first key; without an agent none, which is said.
  rmSync(join(at.home, '.ssh/id_ed25519.pub'));
  const bin = join(at.dir, 'bin');
  mkdirSync(bin);
  const certificate = 'ssh-ed25519-cert-v01@openssh.com AAAA mine';
  writeFileSync(
    join(bin, 'ssh-add'),
    `#!/bin/sh\n[ "$SSH_AUTH_SOCK" = /agent ] && printf '${certificate}\\n${KEY}\\n'\n`,
    {
      mode: 0o755,
    },
  );
  const PATH = `${bin}${delimiter}${process.env['PATH'] ?? ''}`;
  const argv = argvOf(['web', '--image', 'tiny', '--dry-run', '-o', 'json']);
  const keysOf = async (socket: string) => {
    const { stdout, stderr } = await at.run(argv, { PATH, SSH_AUTH_SOCK: socket });
    const [, disk] = JSON.parse(stdout).spec.template.spec.volumes;
    return [parse(disk.cloudInitNoCloud.userData).ssh_authorized_keys, stderr];
  };
  assert.deepEqual(await keysOf('/agent'), [[KEY], '']);
  const [none, said] = await keysOf('/none');
  assert.deepEqual(none, []);
  assert.match(said, /^no SSH key is in the manifest: there is none in ~\/\.ssh/);
  assert.ok(!existsSync(at.data), 'nothing was made');

  const wrong: [argv: string[], message: RegExp][] = [
    [['web'], /create takes an image: --image/],
    [['--image', 'tiny'], /create takes one NAME/],
    [['web', '--image', 'debain:13'], /no image is called debain:13; did you mean debian:13\?/],
    [['web', '--image', 'nginx'], /no image is called nginx/],
    [['web', '--image', 'ftp://host/x'], /http and https URLs/],
    [['web', '--image', 'tiny', '--memory', '512'], /--memory takes a size with its unit/],
    [['web', '--image', 'tiny', '--memory', '1Gi', '--instancetype', 'u1.small'], /an instance type says how much/],
    [
      ['web', '--image', 'tiny', '--ssh-key', '/nowhere'],
      /--ssh-key takes a public key or a file of them .*\/nowhere: no such file or directory$/m,
    ],
    [['web', '--image', 'tiny', '--ssh-key', '/'], /--ssh-key takes .*: \/ is a directory$/m],
    [['web', '--image', 'tiny', '--ssh-key', '/dev/zero'], /--ssh-key takes .*: \/dev\/zero: larger than 1 MiB$/m],
    [
      ['web', '--image', 'tiny', '--ssh-key', 'ssh-ed25519 AAAAC3Nz me'],
      /--ssh-key takes a public key or a file of them/,
    ],
    [['web', '--image', 'tiny', '--ssh-key', ''], /--ssh-key is empty/],
    [['web', '--image', 'tiny', '--ssh-key', 'none', '--cloud-init', '/'], /--cloud-init: \/ is a directory$/m],
    [
      ['web', '--image', 'tiny', '--ssh-key', 'none', '--cloud-init', '/dev/zero'],
      /--cloud-init: \/dev\/zero: larger than 1 MiB$/m,
    ],
    [['web', '--image', 'tiny', '--imgae', 'x'], /Unknown option '--imgae'; did you mean --image\?/],
    [['web', '--image', 'tiny', '-p', '22'], /-p takes HOST:GUEST, such as 2222:22/],
    [['web', '--image', 'tiny', '-p', '2222:22', '-p', '2222:80'], /-p gives port 2222 of this host twice/],
    [['Web_1', '--image', 'tiny'], /a machine is named with small letters, .* not "Web_1"/],
    [['pod/web', '--image', 'tiny'], /a machine is named NAME, vm\/NAME, .* not "pod\/web"/],
    [['web', '--image', 'tiny', '--disk', '-4Gi'], /--disk takes a value \(see: coracle create --help\)/],
    [['web', '--image', 'tiny', '--mem', '1Gi'], /Unknown option '--mem'; did you mean --memory\?/],
  ];
  const refusals = await at.runEach(wrong.map(([argv]) => argvOf(argv)));
  for (const [i, [argv, message]] of wrong.entries()) assert.match(refused(refusals[i]!, 1), message, argv.join(' '));
});

// S-1142: Commands say what a word that names nothing may have meant; `help COMMAND` shows examples; `--explain` prints the call
//   of kubectl or virtctl, and does nothing.
test('typos are answered with a suggestion, help with examples, --explain with the equivalent call', async (t) => {
  const at = openWorkspace(t);
  assert.match(refused(await at.run(['craete', 'x']), 1), /unknown command "craete"; did you mean create\?/);
  // S-1626: A command that other programs for machines call otherwise is answered with what it is called here.
  assert.match(refused(await at.run(['shell', 'x']), 1), /unknown command "shell"; did you mean ssh\?/);
  const names = MACHINE_COMMANDS.map(({ name }) => name);
  const helps = await at.runEach([...names.map((name) => ['help', name]), ...names.map((name) => [name, '--help'])]);
  for (const [i, name] of names.entries()) {
    const help = helps[i]!;
    assert.equal(help.code, 0, name);
    assert.match(help.stdout, /^Examples:\n {2}coracle \S/m, name);
    assert.equal(helps[names.length + i]?.stdout, help.stdout);
  }
  assert.equal((await at.up()).code, 0);
  const coracle = (...argv: string[]) => at.run([...argv, '--data-dir', at.data]);
  const vm = await at.run(['create', 'web', '--image', 'fedora', '--ssh-key', KEY, '--dry-run', '--data-dir', at.data]);
  await at.kubectl(['create', 'namespace', 'shop']);
  const made = await at.kubectl(['apply', '-n', 'shop', '-f', '-'], vm.stdout);
  assert.equal(made.code, 0, made.stderr);
  const calls: [argv: string[], call: string][] = [
    [['start', 'web.shop'], 'virtctl start web -n shop'],
    [['stop', 'vm/web', '-n', 'shop', '--force'], 'virtctl stop web -n shop --force --grace-period=0'],
    [['pause', 'web', '-n', 'shop'], 'virtctl pause vm web -n shop'],
    [['ssh', 'root@web.shop', '--', 'ls', '-l'], "virtctl ssh -l root vm/web/shop --command 'ls -l'"],
    [['ssh', '-l', 'root', 'web', '-n', 'shop', 'uname', '-n'], "virtctl ssh -l root vm/web/shop --command 'uname -n'"],
    [['ssh', 'web.shop', '-i', 'key'], 'virtctl ssh -l fedora -i key vm/web/shop'],
    [['cp', '-r', 'a', 'web.shop:b'], 'virtctl scp --recursive a fedora@vm/web/shop:b'],
    [
      ['memory-dump', 'get', 'web.shop', '--claim-name', 'dump', '--create-claim'],
      'virtctl memory-dump get web -n shop --claim-name=dump --create-claim',
    ],
    [['list', 'web.shop'], 'kubectl get vm,vmi web -o wide -n shop'],
    [['port-forward', 'web.shop', '8080:80'], 'virtctl port-forward vm/web/shop 8080:80'],
    [['vnc', 'web.shop', '--port', '5901'], 'virtctl vnc web -n shop --proxy-only --port=5901'],
    [['screenshot', 'web.shop', 'a b.png'], "virtctl vnc screenshot web -n shop -f 'a b.png'"],
    [['list', '-A'], 'kubectl get vm,vmi -o wide -A'],
    [['why', 'web.shop'], 'kubectl describe vm,vmi web -n shop'],
    [['ip', 'web.shop'], "kubectl get vmi web -n shop -o 'jsonpath={.status.interfaces[*].ipAddress}'"],
    [
      ['expose', 'web.shop', '--port', '8080:80'],
      'virtctl expose vm web -n shop --name web --port 8080 --target-port 80',
    ],
    [['top', '-n', 'shop'], 'kubectl top pod -l kubevirt.io=virt-launcher -n shop'],
    [['top', 'web.shop'], 'kubectl top pod -l vm.kubevirt.io/name=web -n shop'],
    [['console', 'web.shop'], 'virtctl console web -n shop'],
    [['delete', 'vm', 'web.shop'], 'kubectl delete vm web -n shop'],
    [['delete', 'namespace', 'shop', '--wait=false'], 'kubectl delete namespace shop --wait=false'],
    [['restart', 'vm', 'web', '-n', 'shop'], 'virtctl restart web -n shop'],
    [
      ['drain', 'node/n1', '--timeout', '60'],
      'kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --force --timeout=60s',
    ],
  ];
  const explained = await at.runEach(
    calls.map(([[name = '', ...words]]) => [name, '--explain', '--data-dir', at.data, ...words]),
  );
  assert.deepEqual(
    explained,
    calls.map(([, call]) => ({ code: 0, stdout: `${call}\n`, stderr: '' })),
  );
  const fork = await coracle('fork', 'web.shop', '--count', '2', '--explain');
  const asked = /^kubectl create -f - <<'EOF'\n([\s\S]*)\nEOF\n$/.exec(fork.stdout)?.[1];
  const created = await at.kubectl(['create', '-n', 'shop', '--dry-run=server', '-o', 'json', '-f', '-'], asked);
  assert.equal(created.code, 0, fork.stderr + created.stderr);
  assert.match(created.stdout, /"coracle\.dev\/[a-z-]+": "web-fork-1,web-fork-2"/);
  // S-1627: What takes a guest says in one line of a stopped machine that it is stopped and how to start it, of one that is not there
  //   which may have been meant; `list` and `top` take names of machines.
  await t.test('what takes a guest says that there is none', () => refusesWithoutGuest(at));
  // S-1143: `coracle why` says in plain words why a machine does not run, with the next step, and ends with 1.
  await t.test('why says what a machine waits for', async () => {
    const why = await coracle('why', 'web.shop');
    assert.equal(why.code, 1, why.stderr);
    assert.match(why.stdout, /^shop\/web (waits|is starting)/);
  });
  // S-1422: `coracle create` refuses an instance type and a preference that are not there, with the name that may have been meant.
  await t.test('create refuses an instance type and a preference that are not there', async () => {
    const asked = ['create', 'odd', '--image', 'x.example/y', '--ssh-key', KEY];
    assert.match(
      refused(await coracle(...asked, '--instancetype', 'u1.smal'), 1),
      /no instance type u1\.smal; did you mean u1\.small\? \(kubectl get vmclusterinstancetype\)/,
    );
    assert.match(
      refused(await coracle(...asked, '--preference', 'febora'), 1),
      /no preference febora; did you mean fedora\? \(kubectl get vmclusterpreference\)/,
    );
    assert.match(
      refused(await coracle(...asked, '--instancetype', 'namespaced/own'), 1),
      /no instance type default\/own \(kubectl get vminstancetype -n default\)/,
    );
  });
  // S-1691: `coracle logs` of a machine that has not started says so, and why.
  // S-1424: Ctrl-C while `coracle create --wait` waits says that the machine is there all the same, and how to undo it.
  await t.test('create that is interrupted says what it leaves', async () => {
    const given = ['--ssh-key', KEY, '--wait', '--data-dir', at.data];
    const started = at.start(['create', 'left', '--image', 'x.example/y', ...given]);
    await started.line(/^default\/left (Pending|Scheduling)/m);
    started.child.kill('SIGINT');
    const { code, stderr } = await started.ended;
    assert.equal(code, 1);
    assert.match(stderr, /^error: interrupted: default\/left is made, .*coracle delete left -n default\)$/m);
    assert.match(refused(await coracle('logs', 'left'), 1), /default\/left has no log yet: it \w/);
    assert.equal((await coracle('delete', 'left')).code, 0);
  });
  // S-1421: `coracle list` says why a machine is stopped that its run strategy wants to run.
  await t.test('list says why a machine cannot be started', async () => {
    const given = ['--ssh-key', KEY, '--preference', 'none', '--instancetype', 'u1.smal'];
    const asked = await at.run([
      'create',
      'odd',
      '--image',
      'x.example/y',
      ...given,
      '--dry-run',
      '--data-dir',
      at.data,
    ]);
    assert.equal((await at.kubectl(['apply', '-f', '-'], asked.stdout)).code, 0);
    const cannot = /^odd +Stopped .*"u1\.smal" not found/m;
    await eventually(
      async () => (await coracle('list')).stdout,
      (text) => cannot.test(text),
    );
    assert.equal((await coracle('delete', 'odd')).code, 0);
  });
  const list = await coracle('list', '-A');
  assert.match(list.stdout, /^NAMESPACE +NAME +STATE +ADDRESS +NODE +UP +AGE( +WHY)?\nshop +web /);
  assert.match((await coracle('list')).stdout, /no machines in namespace default \(all namespaces: -A\)/);
  assert.match(refused(await coracle('vnc', 'web', '-n', 'shop'), 1), /shop\/web has no screen: it /);
  assert.match(refused(await coracle('screenshot', 'web.shop', 'x.png'), 1), /shop\/web has no screen: it /);
  assert.match(refused(await coracle('screenshot', 'web.shop'), 1), /screenshot takes a machine and a FILE/);
  assert.match(refused(await coracle('ip', 'web', '-n', 'shop'), 1), /shop\/web has no address: it /);
  assert.match(
    refused(await coracle('ssh', 'wbe', '-n', 'shop'), 1),
    /no machine shop\/wbe; did you mean web\? \(coracle list -A shows all\)/,
  );
  const known = await at.run(['complete-names', 'machines'], { KUBECONFIG: at.kubeconfig });
  assert.deepEqual([known.code, known.stdout], [0, 'web.shop\n']);
  const inShop = await coracle('complete-names', 'machines', '-n', 'shop');
  assert.deepEqual([inShop.code, inShop.stdout], [0, 'web\n']);
  // S-1678: An image that is put into a directory without a control plane, while the kubeconfig leads to that of another, is
  //   there with a note that names the flag.
  const disk = join(at.dir, 'x.raw');
  writeFileSync(disk, new Uint8Array(1024 * 1024));
  const astray = await at.run(['image', 'import', 'x', disk], { KUBECONFIG: at.kubeconfig });
  assert.deepEqual([astray.code, astray.stdout.slice(0, 18)], [0, 'localhost/x:latest']);
  assert.match(
    astray.stderr,
    /^it is in \S+, where no control plane runs, and \S+ leads to another one: --data-dir DIR/,
  );
  const catalogue = await at.run(['complete-names', 'images']);
  assert.ok(catalogue.stdout.split('\n').includes('debian:13'));
  const images = await coracle('images', 'deb');
  assert.match(images.stdout, /^debian:13 +no +debian +debian +quay\.io\/containerdisks\/debian:13$/m);

  // S-1312: `coracle expose` gives a machine a name and an address that stay, by a Service.
  await t.test('expose makes a Service', async () => {
    const exposed = await coracle('expose', 'web.shop', '--port', '8080:80', '--port', '53/udp');
    assert.deepEqual([exposed.code, exposed.stdout], [0, 'shop/web is web.shop.svc, port 8080, 53\n'], exposed.stderr);
    const { spec } = JSON.parse((await at.kubectl(['get', 'svc', 'web', '-n', 'shop', '-o', 'json'])).stdout);
    assert.deepEqual(spec.selector, { 'vm.kubevirt.io/name': 'web' });
    assert.deepEqual(
      spec.ports.map(({ port, targetPort, protocol }: Record<string, unknown>) => [port, targetPort, protocol]),
      [
        [8080, 80, 'TCP'],
        [53, 53, 'UDP'],
      ],
    );
    assert.match(
      refused(await coracle('expose', 'web.shop', '--port', '80'), 1),
      /there is a Service shop\/web already/,
    );
    assert.match(refused(await coracle('expose', 'web.shop', '--port', '0'), 1), /--port takes PORT or PORT:GUEST/);
  });
  const again = await at.run(['create', 'web', '--image', 'tiny.example/x', '-n', 'shop', '--data-dir', at.data]);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /machine shop\/web already exists/);
  // S-1314: `coracle create` asks whether the name is free before it fetches or imports an image: of a machine that is there
  //   nothing is replaced.
  await t.test('create imports nothing for a name that is taken', async () => {
    const file = join(at.home, 'disk.img');
    writeFileSync(file, Buffer.alloc(1 << 20));
    const asked = ['create', 'web', '--image', file, '--ssh-key', KEY, '-n', 'shop'];
    assert.match(refused(await coracle(...asked), 1), /machine shop\/web already exists/);
    assert.deepEqual(JSON.parse((await coracle('image', 'list', '--json')).stdout), []);
    const catalogued = ['create', 'web', '--image', 'debian:13', '--ssh-key', KEY, '-n', 'shop'];
    assert.match(refused(await coracle(...catalogued), 1), /machine shop\/web already exists/);
  });
  const [stopped, gone] = [await coracle('stop', 'web.shop'), await coracle('delete', 'web.shop')];
  assert.deepEqual([stopped.code, gone.code], [0, 0], stopped.stderr + gone.stderr);
});

async function refusesWithoutGuest(at: ReturnType<typeof openWorkspace>): Promise<void> {
  const off = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'off', namespace: 'shop' },
    spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
  };
  const made = await at.kubectl(['create', '-f', '-'], JSON.stringify(off));
  assert.equal(made.code, 0, made.stderr);
  const call = async (...argv: string[]): Promise<string> => {
    const { command, rest } = findCommand(MACHINE_COMMANDS, argv) ?? assert.fail(argv[0]);
    const printed: string[] = [];
    const say = (text: string): void => void printed.push(text);
    const { flags, words } = readArguments(command, [...rest, '--kubeconfig', at.kubeconfig]);
    const context = { flags, words, environment: { HOME: at.home }, signal: AbortSignal.timeout(60_000) };
    await (await command.load())({ ...context, print: say, note: say, progress: say });
    return printed.join('\n');
  };
  const withGuest: [name: string, ...more: string[]][] = [
    ['restart'],
    ['pause'],
    ['unpause'],
    ['top'],
    ['ssh'],
    ['port-forward', '8080:80'],
    ['vnc'],
    ['screenshot', 'x.png'],
    ['ip'],
    ['logs'],
  ];
  for (const [name, ...more] of withGuest) {
    await assert.rejects(
      call(name, 'off.shop', ...more),
      /shop\/off .*is stopped.*\(.*coracle start off -n shop\)/,
      name,
    );
    await assert.rejects(call(name, 'vm/of', '-n', 'shop', ...more), /no machine shop\/of; did you mean off\?/, name);
  }
  const openKey = join(at.dir, 'open key');
  writeFileSync(openKey, 'x');
  chmodSync(openKey, 0o644);
  for (const [file, why] of [
    ['/nowhere', /--identity takes a file of a key: \/nowhere: no such file or directory$/],
    ['/', /--identity takes a file of a key: \/ is a directory$/],
    [openKey, /--identity: others may read .*open key, and ssh takes no such key \(chmod 600 '.*open key'\)$/],
  ] as const)
    await assert.rejects(call('ssh', 'off.shop', '-i', file), why);
  await assert.rejects(call('memory-dump', 'get', 'off.shop', '--claim-name', 'd', '--create-claim'), /is stopped/);
  assert.match(await call('list', 'off.shop', 'vm/web.shop'), /^NAME +STATE .*\noff +Stopped .*\nweb +\w/);
  await assert.rejects(call('list', 'of.shop'), /no machine default\/of\.shop, nor shop\/of/);
  await assert.rejects(call('start', 'off.shop', '--wait', '--timeout', 'x'), /--timeout takes a whole number/);
  const { status } = JSON.parse((await at.kubectl(['get', 'vm', 'off', '-n', 'shop', '-o', 'json'])).stdout);
  assert.equal(status?.stateChangeRequests, undefined, 'a wrong --timeout starts nothing');
  await at.kubectl(['delete', 'vm', 'off', '-n', 'shop']);
}
