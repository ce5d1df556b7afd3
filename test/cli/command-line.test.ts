/** The command line contract: what scripts rely on. Every test has a home and a data directory of its own. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { COMMANDS } from '../../packages/coracle/src/cli/commands.ts';
import { ENGINE_FLAGS } from '../../packages/coracle/src/config/program-files.ts';
import { isProgram } from '../../packages/runtime/src/process/program.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { holderOf, lines, openWorkspace, READY, refusal, root, runProgram } from './workspace.ts';

const modeOf = (path: string): number => statSync(path).mode & 0o777;
const KEPT = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kept', namespace: 'default' },
  data: { answer: '42' },
};

async function asAdmin<Result>(
  data: string,
  work: (admin: ReturnType<typeof adminOf>) => Promise<Result>,
): Promise<Result> {
  const admin = adminOf(data);
  try {
    return await work(admin);
  } finally {
    await admin.close();
  }
}

// S-081: `up --detach` returns 0 once `/readyz` is ok and prints exactly one line that begins `ready in`;
//   `DIR/kubeconfig` exists then.
// S-107: Files of the data directory are private (0600, 0700).
// S-039: Down, then up: data and certificates stay, the revision goes on.
// S-085: A foreground `up` ends with 0 on SIGINT and SIGTERM.
test('up --detach: one ready line, private files, one holder of a directory', async (t) => {
  const at = openWorkspace(t);
  const first = await at.up();
  assert.deepEqual([first.code, first.stderr], [0, '']);
  assert.equal(lines(first.stdout).length, 1);
  assert.match(lines(first.stdout)[0]!, READY);
  assert.ok(first.stdout.trim().endsWith(at.kubeconfig));

  assert.equal(modeOf(at.data), 0o700);
  for (const name of readdirSync(at.data, { recursive: true, encoding: 'utf8' })) {
    const path = join(at.data, name);
    assert.equal(modeOf(path), statSync(path).isDirectory() ? 0o700 : 0o600, path);
  }
  const pid = holderOf(at.data);

  // S-082: A second `up` on the same directory exits 1 with the pid that holds it, also at the same moment.
  await t.test('a second up exits 1 and names the holder', async () => {
    const detached = await at.up();
    const inFront = await at.run(['up', '--data-dir', at.data, '--port', '0', '--nodes', '0', '--no-merge-kubeconfig']);
    for (const outcome of [detached, inFront]) assert.match(refusal(outcome, 1), new RegExp(`\\bpid ${pid}\\b`));
  });

  await t.test('a second up that cannot see the first one exits 1 and names the holder all the same', async () => {
    const published = readFileSync(join(at.data, 'running.json'), 'utf8');
    writeFileSync(join(at.data, 'running.json'), '{"half":');
    const outcome = await at.up();
    writeFileSync(join(at.data, 'running.json'), published);
    assert.match(refusal(outcome, 1), new RegExp(`\\bpid ${pid}\\b`));
  });

  // S-084
  await t.test('status, kubeconfig and their JSON', async () => {
    const plain = await at.run(['status', '--data-dir', at.data]);
    assert.equal(plain.code, 0);
    assert.match(plain.stdout, /^control plane {2}https:/);
    const json = await at.run(['status', '--data-dir', at.data, '--json']);
    const said = JSON.parse(json.stdout);
    assert.deepEqual([json.code, said.running, said.pid, said.dataDir], [0, true, pid, at.data]);
    assert.equal((await at.run(['kubeconfig', '--data-dir', at.data])).stdout, `${at.kubeconfig}\n`);
    const raw = await at.kubectl(['get', '--raw', '/readyz']);
    assert.equal(raw.stdout, 'ok');
  });

  const before = parse(readFileSync(at.kubeconfig, 'utf8'));
  const made = await asAdmin(at.data, ({ client }) => client.create(CONFIG_MAPS, KEPT));

  // S-084: `down`, `status`, `kubeconfig` and their JSON.
  await t.test('down stops it; down again is no error; status says so', async () => {
    const down = await at.run(['down', '--data-dir', at.data]);
    assert.deepEqual(down, { code: 0, stdout: 'stopped\n', stderr: '' });
    assert.ok(!existsSync(join(at.data, 'running.json')));
    const again = await at.run(['down', '--data-dir', at.data]);
    assert.equal(again.code, 0);
    assert.equal(lines(again.stdout).length, 1);
    const json = await at.run(['down', '--data-dir', at.data, '--json']);
    assert.deepEqual([json.code, JSON.parse(json.stdout)], [0, { stopped: false }]);
    const status = await at.run(['status', '--data-dir', at.data, '--json']);
    assert.deepEqual([status.code, JSON.parse(status.stdout).running], [1, false]);
    assert.equal((await at.run(['status', '--data-dir', at.data])).code, 1);
  });

  await t.test('another up has data and certificates, the revision goes on, and SIGINT ends it with 0', async () => {
    const up = at.start(['up', '--data-dir', at.data, '--port', '0', '--nodes', '0', '--no-merge-kubeconfig']);
    assert.match(await up.line(/./), READY);
    const { users, clusters } = parse(readFileSync(at.kubeconfig, 'utf8'));
    assert.deepEqual(users, before.users);
    for (const { cluster } of [...clusters, ...before.clusters]) delete cluster.server;
    assert.deepEqual(clusters, before.clusters);
    await asAdmin(at.data, async ({ client }) => {
      const kept = await client.get(CONFIG_MAPS, { namespace: 'default', name: 'kept' });
      assert.deepEqual([kept.data, kept.metadata], [made.data, made.metadata]);
      const next = await client.update(CONFIG_MAPS, { ...kept, data: { answer: '43' } });
      assert.ok(Number(next.metadata.resourceVersion) > Number(made.metadata.resourceVersion));
    });
    up.child.kill('SIGINT');
    const { code, stdout } = await up.ended;
    assert.deepEqual([code, lines(stdout).length], [0, 1]);
    assert.ok(!existsSync(join(at.data, 'running.json')));
  });
});

// S-083: A taken port is one line and exit code 1, and changes nothing.
test('a taken port is one line and exit code 1, and changes nothing in the data', async (t) => {
  const at = openWorkspace(t);
  const taken = createServer();
  t.after(() => taken.close());
  await new Promise<void>((listening) => taken.listen(0, '127.0.0.1', listening));
  const { port } = taken.address() as { port: number };
  for (const more of [[], ['--detach']]) {
    const outcome = await at.run([
      'up',
      '--data-dir',
      at.data,
      '--port',
      String(port),
      '--nodes',
      '0',
      '--no-merge-kubeconfig',
      ...more,
    ]);
    const line = refusal(outcome, 1);
    assert.match(line, new RegExp(`port ${port}\\b.*taken.*--port 0`));
  }
  assert.ok(!existsSync(join(at.data, 'state')));
  assert.ok(!existsSync(at.kubeconfig));
});

// S-087
test('a wrong call is one line that says where help is, and exit code 1', async (t) => {
  const at = openWorkspace(t);
  const file = join(at.dir, 'file');
  writeFileSync(file, '');
  const cases: [string[], RegExp][] = [
    [['up', '--nope'], /--nope.*coracle up --help/],
    [['up', '--port', 'https'], /--port.*0 to 65535.*"https"/],
    [['up', '--port', '65536'], /--port.*65536/],
    [['up', '--port', '-1'], /--port/],
    [['up', '--nodes', '1.5'], /--nodes.*1\.5/],
    [['up', '--port'], /--port/],
    [['up', '--detach=yes'], /--detach/],
    [['up', 'now'], /up.*"now".*coracle up --help/],
    [['up', '--data-dir', ''], /--data-dir.*empty/],
    [['up', '--data-dir', at.data, '--controllers', '*,-vmm'], /--controllers.*"vmm".*\bvm, vmi\b/],
    [['up', '--data-dir', join(at.dir, 'detached'), '--controllers', 'pods', '--detach'], /--controllers.*"pods"/],
    [['controllers', '--controllers', 'nope'], /--controllers.*"nope"/],
    [['down', 'everything'], /down.*"everything"/],
    [['status', '--jsno'], /--jsno/],
    [['frobnicate'], /unknown command "frobnicate".*coracle --help/],
    [['__proto__'], /unknown command/],
    [['completion'], /bash, zsh, fish/],
    [['completion', 'constructor'], /bash, zsh, fish/],
    [['console'], /takes one machine/],
    [['console', 'a', 'b'], /takes one machine/],
    [['console', 'pod/a'], /vm\/NAME, vmi\/NAME or NAME\.NAMESPACE/],
    [['drain', 'vm/a'], /is a machine.*virtctl migrate/],
    [['drain', 'pod/a'], /NODE or node\/NODE/],
    [['image'], /image/],
    [['image', 'frob'], /image/],
    [['image', 'list', 'all'], /image/],
    [['version', 'x'], /version.*"x"/],
  ];
  const [first, ...others] = cases;
  assert.match(refusal(await at.run(first![0]), 1), first![1]);
  const outcomes = await at.runEach(others.map(([argv]) => argv));
  for (const [i, [argv, wanted]] of others.entries())
    await t.test(argv.join(' '), () => assert.match(refusal(outcomes[i]!, 1), wanted));
  await t.test('nothing was made by any of them', () => {
    assert.deepEqual(readdirSync(at.home), []);
    assert.ok(!existsSync(at.data));
  });
  await t.test('what is there but cannot be used is exit code 1', async () => {
    for (const argv of [
      ['up', '--data-dir', file, '--port', '0', '--nodes', '0', '--no-merge-kubeconfig'],
      ['up', '--data-dir', file, '--port', '0', '--nodes', '0', '--no-merge-kubeconfig', '--detach'],
    ])
      assert.match(refusal(await at.run(argv), 1), new RegExp(file));
    assert.match(refusal(await at.run(['kubeconfig', '--data-dir', at.data]), 1), /coracle up/);
    assert.match(refusal(await at.run(['controllers']), 1), /no kubeconfig.*coracle up/);
    assert.match(refusal(await at.run(['console', 'vm'], { KUBECONFIG: join(at.dir, 'none') }), 1), /no kubeconfig/);
    writeFileSync(file, 'a: [');
    assert.match(refusal(await at.run(['controllers', '--kubeconfig', file]), 1), /not valid YAML/);
    writeFileSync(file, '42');
    assert.match(refusal(await at.run(['controllers', '--kubeconfig', file]), 1), new RegExp(file));
  });
});

// S-087: `--help` everywhere, completion for three shells, exit codes 0 and 1.
test('help, version, completion', async (t) => {
  const at = openWorkspace(t);
  const help = await at.run(['--help']);
  assert.equal(help.code, 0);
  for (const { name, hidden } of COMMANDS) if (!hidden) assert.match(help.stdout, new RegExp(`^  ${name} +\\S`, 'm'));
  const bare = await at.run([]);
  assert.equal(bare.code, 1);
  assert.match(bare.stdout + bare.stderr, /Usage: coracle COMMAND/);
  const helps = await at.runEach(COMMANDS.map(({ name }) => [name, '--help']));
  for (const [i, { name, flags, summary, hidden, subcommands }] of COMMANDS.entries()) {
    const outcome = helps[i]!;
    assert.deepEqual([outcome.code, outcome.stderr], [0, ''], name);
    assert.ok(outcome.stdout.startsWith(`${summary}\n`), name);
    assert.match(outcome.stdout, new RegExp(`Usage: coracle ${name}\\b`));
    if (!hidden && !subcommands) assert.match(outcome.stdout, /^Examples:\n {2}\S.*coracle|^ {2}coracle \S/m, name);
    for (const flag of Object.keys(flags)) assert.match(outcome.stdout, new RegExp(`^  --${flag}\\b`, 'm'));
  }
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const argv of [['version'], ['--version']])
    assert.deepEqual(await at.run(argv), { code: 0, stdout: `coracle ${version}\n`, stderr: '' });
  assert.equal(JSON.parse((await at.run(['version', '--json'])).stdout).version, version);

  // S-1420: bash completes machines, deleted ones, nodes, images (colons among them), namespaces, instance types and preferences
  //   where a word or a flag names one, in the namespace that the line names.
  await t.test('the bash script parses and completes commands, flags and names', async () => {
    const script = await at.run(['completion', 'bash']);
    const path = join(at.dir, 'completion.bash');
    writeFileSync(path, script.stdout);
    assert.deepEqual(await runProgram('bash', ['-n', path]), { code: 0, stdout: '', stderr: '' });
    const names = `case "$*" in
      'complete-names machines') echo web wood ;; 'complete-names machines -n shop' | 'complete-names machines --namespace=shop') echo till ;;
      'complete-names deleted') echo gone ;; 'complete-names nodes') echo rack1 ;; 'complete-names namespaces') echo shop ;;
      'complete-names images') echo tiny debian:12 debian:13 ;; 'complete-names instancetypes') echo u1.small ;;
    esac`;
    /** Asks for a line; `pieces` are its last words as bash breaks them, where it breaks more than at blanks. */
    const asking = (line: string, pieces?: readonly string[]): string => {
      const words = (pieces ? [...line.split(' ').slice(0, -1), ...pieces] : line.split(' ')).map((one) => `'${one}'`);
      return `COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}
        COMPREPLY=(); _coracle; echo "\${COMPREPLY[*]-}"`;
    };
    const cases: readonly (readonly [line: string, replies: string, pieces?: readonly string[]])[] = [
      ['coracle co', 'console convert controllers completion'],
      ['coracle help st', 'start stop status'],
      ['coracle up --no', '--nodes --no-merge-kubeconfig'],
      ['coracle completion ', 'bash zsh fish'],
      ['coracle image r', 'rm'],
      ['coracle ssh w', 'web wood'],
      ['coracle ssh root@we', 'web', ['root', '@', 'we']],
      ['coracle stop web vm/wo', 'vm/wood'],
      ['coracle ssh -n shop ', 'till'],
      ['coracle ssh --namespace=shop ', 'till'],
      ['coracle ssh -n s', 'shop'],
      ['coracle cp web:', '', ['web', ':']],
      ['coracle undelete ', 'gone'],
      ['coracle drain node/', 'node/rack1'],
      ['coracle create x --image deb', 'debian:12 debian:13'],
      ['coracle create x --image debian:', '12 13', ['debian', ':']],
      ['coracle create x --image=debian:13', '13', ['--image', '=', 'debian', ':', '13']],
      ['coracle images refresh debian:1', '12 13', ['debian', ':', '1']],
      ['coracle create x --instancetype ', 'u1.small'],
      ['coracle create x --cloud-init ', ''],
      ['coracle console wo', 'wood'],
    ];
    const program = `set -eu; coracle() { ${names}; }; . '${path}'\n${cases.map(([line, , pieces]) => asking(line, pieces)).join('\n')}`;
    const { code, stdout, stderr } = await runProgram('bash', ['-c', program]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      stdout
        .trimEnd()
        .split('\n')
        .map((replies, at) => [cases[at]?.[0], replies]),
      cases.map(([line, replies]) => [line, replies]),
    );
  });
  // S-1676: A namespace that a line names as `--namespace=NAME` counts for completion too; machines of other namespaces complete as `NAME.NAMESPACE`.
  // S-1464: zsh and fish, where they are on the host, complete names of the namespace that the line names, and no flag of another
  //   command.
  await t.test('fish completes as it is asked', async (inner) => {
    if (!isProgram('fish')) return inner.skip('there is no fish');
    const path = join(at.dir, 'coracle.fish');
    writeFileSync(path, (await at.run(['completion', 'fish'])).stdout);
    const asks = [
      'stop w',
      'ssh -n shop ',
      'ssh --namespace=shop ',
      'create x --image deb',
      'stop --',
      'nod',
      'completion ',
      'create x -n s',
    ];
    const program = [
      // Words of the test alone, by a function in the place of the program.
      `function coracle; switch "$argv[2] $argv[3] $argv[4]"; case 'machines -n shop' 'machines --namespace=shop *'; echo till; case 'machines*'; printf 'web\nwood\n'; case 'images*'; echo debian:13; case 'namespaces*'; echo shop; end; end`,
      `source ${path}`,
      ...asks.map((line) => `echo (complete -C 'coracle ${line}' | string replace -r '\t.*' '')`),
    ].join('\n');
    const { stdout, stderr } = await runProgram('fish', ['--no-config', '-c', program], { HOME: at.home });
    assert.equal(stderr, '');
    const [machines, scoped, again, images, flags, ...more] = lines(stdout);
    assert.deepEqual(
      [machines, scoped, again, images, ...more],
      ['web wood', 'till', 'till', 'debian:13', 'node', 'bash fish zsh', 'shop'],
    );
    assert.deepEqual(flags?.split(' ').includes('--force'), true);
    for (const other of ['--image', '--preference']) assert.ok(!flags?.split(' ').includes(other), other);
  });
  await t.test('zsh completes as it is asked', async (inner) => {
    if (!isProgram('zsh')) return inner.skip('there is no zsh');
    const path = join(at.dir, '_coracle');
    writeFileSync(path, (await at.run(['completion', 'zsh'])).stdout);
    // Its completion system runs at a terminal alone: what the function would add is written down instead.
    const ask = (line: string): string => {
      const words = line.split(' ');
      return `words=(${words.map((one) => `'${one}'`).join(' ')}); CURRENT=${words.length}; PREFIX='${words.at(-1)}'; added=(); _coracle; echo $added`;
    };
    const program = [
      `compdef() { }; compset() { }; _files() { added+=(FILES) }`,
      `compadd() { [[ $1 == -- ]] && shift; added+=(\${(M)@:#$PREFIX*}) }`,
      `coracle() { case "$2 $3 $4" in 'machines -n shop' | 'machines --namespace=shop '*) echo till ;; machines*) echo web wood ;; namespaces*) echo shop ;; esac }`,
      `. ${path}`,
      ...[
        'coracle stop w',
        'coracle ssh -n shop ',
        'coracle ssh --namespace=shop ',
        'coracle ssh -n ',
        'coracle stop --gr',
        'coracle create x --cloud-init ',
      ].map(ask),
    ].join('\n');
    const { stdout, stderr } = await runProgram('zsh', ['-f', '-c', program], { HOME: at.home });
    assert.equal(stderr, '');
    assert.deepEqual(lines(stdout), ['web wood', 'till', 'till', 'shop', '--grace-period', 'FILES']);
  });
  await t.test('zsh and fish name every command and flag', async () => {
    const zsh = (await at.run(['completion', 'zsh'])).stdout;
    const fish = (await at.run(['completion', 'fish'])).stdout;
    for (const { name, flags, hidden } of COMMANDS) {
      if (hidden) continue;
      assert.ok(zsh.includes(name) && fish.includes(name), name);
      for (const flag of Object.keys(flags)) assert.ok(zsh.includes(`--${flag}`) && fish.includes(` -l ${flag}`), flag);
    }
  });
  // S-093: The launcher finds a Node of 24 or newer through a symbolic link, and prints one line when it finds none.
  await t.test('the launcher runs through a symbolic link, and says in one line when there is no Node', async () => {
    const link = join(at.dir, 'bin');
    mkdirSync(link);
    symlinkSync(join(root, 'coracle'), join(link, 'coracle'));
    const linked = await runProgram(join(link, 'coracle'), ['version']);
    assert.deepEqual(linked, { code: 0, stdout: `coracle ${version}\n`, stderr: '' });
    const script = readFileSync(join(root, 'coracle'), 'utf8');
    assert.ok(
      script.includes(`'${ENGINE_FLAGS.join(' ')}'`),
      'a program that stays has the same flags when it was detached',
    );
    const bare = join(at.dir, 'bare');
    mkdirSync(join(bare, 'tools/setup'), { recursive: true });
    for (const file of ['coracle', 'tools/setup/find-node.sh', 'tools/setup/private-cache.sh'])
      writeFileSync(join(bare, file), readFileSync(join(root, file)), { mode: 0o755 });
    for (const tool of ['dirname', 'readlink', 'sh'])
      symlinkSync((await runProgram('/bin/sh', ['-c', `command -v ${tool}`])).stdout.trim(), join(link, tool));
    const none = await runProgram(join(bare, 'coracle'), ['version'], { PATH: link });
    assert.equal(none.code, 1);
    assert.match(none.stderr, /^coracle: needs Node 24 or newer.*\n$/);
  });
});

// S-312: A host without QEMU says so at the start.
// S-301
test('a host without QEMU and a kubeconfig that cannot be written are warnings; whom the user trusts is kept', async (t) => {
  const at = openWorkspace(t);
  const authorities = join(at.dir, 'authorities.pem');
  writeFileSync(authorities, '');
  const argv = ['up', '--data-dir', at.data, '--port', '0', '--detach'];
  const KUBECONFIG = '/proc/coracle/config';
  const { code, stderr } = await at.run(argv, { PATH: at.home, NODE_EXTRA_CA_CERTS: authorities, KUBECONFIG });
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^warning: .*kubeconfig.*\/proc\/coracle.*$/m);
  assert.match(stderr, /^warning: no guest can run here: qemu-system-x86_64 and qemu-img not found in PATH/m);
  const { pid } = JSON.parse((await at.run(['status', '--data-dir', at.data, '--json'])).stdout) as { pid: number };
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  assert.ok(environment.includes(`NODE_EXTRA_CA_CERTS=${authorities}`), environment.join(' '));
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
});

// S-1463: What only lists images does so also where nothing can be written; `doctor` says where that is.
// S-088: `doctor` and `image list` speak plain and JSON.
// S-367
test('doctor and image list speak plain and JSON', async (t) => {
  const at = openWorkspace(t);
  const plain = await at.run(['doctor', '--data-dir', at.data]);
  assert.ok(plain.code === 0 || plain.code === 1, plain.stderr);
  assert.equal(plain.stderr, '');
  const json = await at.run(['doctor', '--data-dir', at.data, '--json']);
  const findings = JSON.parse(json.stdout) as { check: string; verdict: string; remedy?: string }[];
  for (const check of ['acceleration', 'QEMU', 'UEFI firmware', 'kubectl', 'disk', 'port', 'low ports'])
    assert.ok(
      findings.some((one) => one.check === check),
      check,
    );
  for (const { verdict, remedy, check } of findings) {
    assert.match(verdict, /^(PASS|WARN|FAIL)$/);
    if (verdict === 'FAIL') assert.ok(remedy, `${check} fails and names no remedy`);
  }
  assert.ok(!findings.some(({ check }) => check === 'git'), 'nothing here uses git');
  assert.equal(json.code, findings.some(({ verdict }) => verdict === 'FAIL') ? 1 : 0);
  assert.ok(!existsSync(at.data), 'doctor only looks');
  // S-1463
  for (const name of [['images'], ['image', 'list']])
    assert.equal((await at.run([...name, '--data-dir', '/proc/coracle/data'])).code, 0, 'a list writes nothing');
  const images = await at.run(['image', 'list', '--data-dir', at.data, '--json']);
  assert.deepEqual([images.code, JSON.parse(images.stdout)], [0, []]);
  assert.equal((await at.run(['image', 'list', '--data-dir', at.data])).code, 0);
});

// S-1463
test('doctor names a directory that cannot be written to', {
  skip: process.getuid?.() === 0 && 'root may',
}, async (t) => {
  const at = openWorkspace(t);
  const closed = join(at.dir, 'closed');
  mkdirSync(closed, { mode: 0o555 });
  const { stdout } = await at.run(['doctor', '--data-dir', join(closed, 'data')]);
  assert.match(stdout, /FAIL +disk +.*closed cannot be written to/);
});

// S-301: A closed terminal, a full or closed output, a directory that cannot be made and Ctrl-C while `up --detach`
//   waits each end in one line or none, and leave nothing running.
test('a directory that cannot be made is one line and exit code 1, without trying for ever', async (t) => {
  const at = openWorkspace(t);
  // /proc answers ENOENT to a new directory although its parent is there.
  for (const more of [[], ['--detach']])
    assert.match(
      refusal(await at.run(['up', '--data-dir', '/proc/coracle/data', '--port', '0', '--nodes', '0', ...more]), 1),
      /\/proc\/coracle/,
    );
});

// S-301
test('output that nobody takes is no stack trace', async () => {
  const main = join(root, 'packages/coracle/src/main.ts');
  const through = (rest: string) => runProgram('/bin/sh', ['-c', `"$0" "$1" ${rest}`, process.execPath, main]);
  const full = await through('--help >/dev/full');
  assert.equal(full.code, 1);
  assert.match(full.stderr, /^error: cannot write the output: .*no space.*\n$/);
  // The reader is gone before anything is written.
  const gone = await through('completion bash | exec true');
  assert.deepEqual([gone.code, gone.stderr], [0, '']);
});
