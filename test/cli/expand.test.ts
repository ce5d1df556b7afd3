/** `coracle expand` and `coracle convert`: with and without a cluster. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { openWorkspace } from './workspace.ts';

interface Field {
  readonly path: string;
  readonly value: unknown;
  readonly layer: string;
}

const machine = (matchers: string, domain = '{devices: {}}') => `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: vm}
spec:
  runStrategy: Halted
  ${matchers}
  template: {spec: {domain: ${domain}, hostname: mine}}
`;
const OWN = `---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineInstancetype
metadata: {name: own}
spec: {cpu: {guest: 3}, memory: {guest: 96Mi}}
`;
const NANO = 'instancetype: {name: u1.nano}\n  preference: {name: alpine}';

// S-183: `expand` and `convert preset` say what a machine becomes, and who set each field; the guide to instance types
//   works as printed.
test('expand and convert', { timeout: 600_000 }, async (t) => {
  const at = openWorkspace(t);
  const file = join(at.dir, 'vm.yaml');
  const expand = async (text: string, ...more: string[]) => {
    writeFileSync(file, text);
    return at.run(['expand', '-f', file, ...more]);
  };
  const fieldsOf = (stdout: string): Map<string, Field> =>
    new Map(
      (JSON.parse(stdout) as { fields: Field[] }).fields.map((field) => [
        field.path.replace('spec.template.spec.', ''),
        field,
      ]),
    );

  await t.test('say who set each field', async () => {
    const outcome = await expand(machine(NANO), '--json');
    assert.deepEqual([outcome.code, outcome.stderr], [0, '']);
    const fields = fieldsOf(outcome.stdout);
    const of = (path: string) => [fields.get(path)?.value, fields.get(path)?.layer];
    assert.deepEqual(of('hostname'), ['mine', 'user']);
    assert.deepEqual(of('domain.memory.guest'), ['512Mi', 'instancetype']);
    assert.deepEqual(of('domain.devices.interfaces[0].model'), ['virtio', 'preference']);
    assert.deepEqual(of('domain.machine.type'), ['q35', 'webhook']);
    assert.deepEqual(of('networks[0].name'), ['default', 'cluster default']);
    const { virtualMachine } = JSON.parse(outcome.stdout);
    assert.equal(virtualMachine.spec.instancetype, undefined);
    assert.equal(virtualMachine.spec.template.spec.domain.cpu.sockets, 1);
    assert.match((await expand(machine(NANO))).stdout, /^FIELD +VALUE +SET BY\n/);
  });

  await t.test('use what else the file holds', async () => {
    const matcher = 'instancetype: {kind: VirtualMachineInstancetype, name: own}';
    const fields = fieldsOf((await expand(machine(matcher) + OWN, '--json')).stdout);
    assert.equal(fields.get('domain.cpu.sockets')?.value, 3);
  });

  await t.test('refuse in one line', async () => {
    const cases: [string, RegExp][] = [
      [OWN, /must hold one VirtualMachine, and holds 0$/m],
      [machine('instancetype: {name: nobody}'), /"nobody" not found$/m],
      [
        machine(NANO, '{devices: {}, memory: {guest: 1Gi}}'),
        /domain\.memory\.guest conflicts with selected instance type$/m,
      ],
      [machine('instancetype: {}'), /Either Name or InferFromVolume should be provided/],
      [machine('instancetype: [1]'), /the VirtualMachine is not valid: spec\.instancetype/],
      ['{', /is not valid YAML/],
      ['just words', /not an object/],
    ];
    for (const [text, expected] of cases) {
      const { code, stdout, stderr } = await expand(text);
      assert.deepEqual([code, stdout], [1, ''], text);
      assert.match(stderr, expected);
      assert.equal(stderr.trim().split('\n').length, 1, stderr);
    }
    assert.equal((await at.run(['expand'])).code, 1);
    assert.match((await at.run(['expand', '-f', join(at.dir, 'none')])).stderr, /cannot read/);
  });

  await t.test('ask the cluster', async () => {
    assert.equal((await at.up()).code, 0);
    const cluster = ['--from-cluster', '--data-dir', at.data];
    const missing = await expand(machine('instancetype: {name: only.there}'), ...cluster);
    assert.match(missing.stderr, /"only.there" not found/);
    const outcome = await expand(machine('running: true'), ...cluster, '--json');
    assert.equal(outcome.code, 1, 'both running and runStrategy');
    assert.match(outcome.stderr, /mutually exclusive/);
    const plain = await expand(machine('updateVolumesStrategy: Replacement'), ...cluster, '--json');
    assert.deepEqual([plain.code, plain.stderr], [0, '']);
    assert.equal(fieldsOf(plain.stdout).get('hostname')?.layer, 'user');
  });

  await t.test('convert presets', async () => {
    writeFileSync(
      file,
      `apiVersion: kubevirt.io/v1
kind: VirtualMachineInstancePreset
metadata: {name: small, namespace: here}
spec: {selector: {matchLabels: {a: b}}, domain: {cpu: {cores: 2}, resources: {requests: {memory: 1Gi}}}}
`,
    );
    const { code, stdout, stderr } = await at.run(['convert', 'preset', '-f', file]);
    assert.equal(code, 0);
    assert.match(stderr, /^small: .*spec\.instancetype and spec\.preference/);
    const [type, preference] = parseAllDocuments(stdout).map((document) => document.toJS());
    assert.deepEqual(
      [type.kind, type.spec],
      ['VirtualMachineInstancetype', { cpu: { guest: 2 }, memory: { guest: '1Gi' } }],
    );
    assert.deepEqual([preference.metadata.namespace, preference.spec.cpu.preferredCPUTopology], ['here', 'cores']);
    assert.equal(JSON.parse((await at.run(['convert', 'preset', '-f', file, '--json'])).stdout).items.length, 2);
    assert.equal((await at.run(['convert', 'pool', '-f', file])).code, 1);
  });
});
