/** What kubectl prints when a manifest is wrong: what is the matter, where, and how to correct it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openWorkspace, root, runProgram } from './workspace.ts';

const found = await runProgram('kubectl', ['version', '--client']).then(
  ({ code }) => code === 0,
  () => false,
);
const tiny = readFileSync(join(root, 'examples/tiny-vm.yaml'), 'utf8');
/** The example with one thing changed; throws when the example no longer has it. */
function changed(from: string, to: string): string {
  assert.ok(tiny.includes(from), `examples/tiny-vm.yaml has no ${JSON.stringify(from)}`);
  return tiny.replace(from, to);
}

const STRATEGY = '  runStrategy: Always\n';
const CASES: readonly [string, string, readonly RegExp[]][] = [
  [
    'unknown fields',
    changed(STRATEGY, '  runStrategey: Always\n').replace(
      '            image:',
      '            color: red\n            image:',
    ),
    [
      /strict decoding error/,
      /unknown field "spec\.runStrategey"/,
      /unknown field "spec\.template\.spec\.volumes\[0\]\.containerDisk\.color"/,
    ],
  ],
  ['a wrong type', changed('guest: 128Mi', 'guest: [128Mi]'), [/spec\.template\.spec\.domain\.memory\.guest/, /array/]],
  [
    'an amount that is none',
    changed('guest: 128Mi', 'guest: plenty'),
    [/The VirtualMachine "tiny" is invalid/, /spec\.template\.spec\.domain\.memory\.guest: Invalid value: "plenty"/],
  ],
  ['a port out of range', changed('port: 8080', 'port: 70000'), [/interfaces\[0\]\.ports\[0\]/, /range 0 < x < 65536/]],
  [
    'running together with runStrategy',
    changed(STRATEGY, `${STRATEGY}  running: true\n`),
    [/spec\.running: /, /mutually exclusive/, /use RunStrategy instead/],
  ],
  [
    'a disk without its volume',
    changed('- name: root\n              disk', '- name: rot\n              disk'),
    [/spec\.template\.spec\.domain\.devices\.disks\[0\]\.name/, /'rot' not found/],
  ],
  [
    'two volumes of one name',
    changed(
      '        - name: cloudinit\n          cloudInitNoCloud',
      '        - name: root\n          cloudInitNoCloud',
    ),
    [/spec\.template\.spec\.volumes\[1\]\.name/, /must not have the same Name/],
  ],
  [
    'a name that is none',
    changed('  name: tiny\n', '  name: Tiny_VM\n'),
    [/metadata\.name: Invalid value: "Tiny_VM"/, /e\.g\. 'example\.com'/],
  ],
  [
    'a kind there is none of',
    changed('kind: VirtualMachine\n', 'kind: VirtualMachin\n'),
    [/no matches for kind "VirtualMachin" in version "kubevirt\.io\/v1"/],
  ],
  ['no kind at all', 'metadata: {name: x}\n', [/apiVersion not set, kind not set/]],
  ['YAML that is not YAML', 'apiVersion: v1\nkind: [ConfigMap\nmetadata', [/yaml: line 3: did not find expected/]],
  ['a tab', 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: x\n', [/yaml: line 4/]],
  [
    'a namespace there is none of',
    changed('  name: tiny\n', '  name: tiny\n  namespace: nowhere\n'),
    [/namespaces "nowhere" not found/],
  ],
];

// S-117
test('kubectl says what is wrong, where, and how to correct it', {
  skip: !found && 'kubectl is not installed',
}, async (t) => {
  const at = openWorkspace(t);
  assert.equal((await at.up()).code, 0);

  for (const [name, manifest, wanted] of CASES) {
    await t.test(name, async () => {
      const { code, stdout, stderr } = await at.kubectl(['create', '-f', '-'], manifest);
      assert.deepEqual([code, stdout], [1, ''], stderr);
      for (const pattern of wanted) assert.match(stderr, pattern);
      assert.doesNotMatch(stderr, /Internal ?[Ee]rror|TypeError|\bat .*\.ts/);
    });
  }
  await t.test('nothing of it was stored, and the manifest they depart from is a good one', async () => {
    assert.equal(
      (await at.kubectl(['get', 'vm,cm', '-l', '!none', '-o', 'name'])).stdout.includes('virtualmachine'),
      false,
    );
    const good = await at.kubectl(['create', '--dry-run=server', '-f', '-'], tiny);
    assert.deepEqual([good.code, good.stderr], [0, '']);
  });
  await t.test('unknown fields only warn when kubectl asks for that', async () => {
    const { code, stderr } = await at.kubectl(
      ['create', '--dry-run=server', '--validate=warn', '-f', '-'],
      CASES[0]![1].replace('runStrategey: Always', 'runStrategy: Halted'),
    );
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^Warning: unknown field "spec\.template\.spec\.volumes\[0\]\.containerDisk\.color"$/m);
  });
  await t.test('an object that is too large', async () => {
    const large = (bytes: number): string =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata: {a: ${'x'.repeat(bytes)}}\n`;
    const many = await at.kubectl(['create', '-f', '-'], large(4 * 1024 * 1024));
    assert.equal(many.code, 1);
    assert.match(many.stderr, /too large.*limit is 3145728/);
    const some = await at.kubectl(['create', '-f', '-'], large(1200 * 1024));
    assert.equal(some.code, 1);
    assert.match(some.stderr, /The ConfigMap "large" is invalid: \[\]: Too long: may not be more than 1048576 bytes/);
  });
  await t.test('a patch and an edit that are wrong', async () => {
    assert.equal((await at.kubectl(['create', 'configmap', 'here', '--from-literal=a=1'])).code, 0);
    const patch = (...argv: string[]) => at.kubectl(['patch', 'configmap', 'here', ...argv]);
    assert.match(
      (await patch('--type=json', '-p', '[{"op":"remove","path":"/data/none"}]')).stderr,
      /The request is invalid: the server rejected our request due to an error in our request/,
    );
    assert.match(
      (await patch('--type=merge', '-p', '{"data":{"a":1}}')).stderr,
      /data\.\w+: expected string, got number/,
    );
    assert.match((await at.kubectl(['get', 'virtualmachin'])).stderr, /doesn't have a resource type "virtualmachin"/);
    assert.match((await at.kubectl(['get', 'vm', 'none'])).stderr, /virtualmachines\.kubevirt\.io "none" not found/);
    assert.match(
      (await at.kubectl(['get', 'cm', '--field-selector=data.a=1'])).stderr,
      /"data\.a" is not a known field selector: only "metadata\.name", "metadata\.namespace"/,
    );
    assert.match((await at.kubectl(['get', 'cm', '-l', 'a=b=c'])).stderr, /unable to parse requirement|found '='/);
  });
});
