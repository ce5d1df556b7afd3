/** `coracle undelete` and `coracle bin`: what they say, and where they need our own server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openWorkspace } from './workspace.ts';

const vm = (uuid: string): string => `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: db, namespace: default}
spec:
  runStrategy: Halted
  template:
    spec:
      domain: {devices: {}, memory: {guest: 64Mi}, firmware: {uuid: ${uuid}}}
`;
const [FIRST, SECOND] = ['aaaaaaaa-0000-4000-8000-000000000001', 'aaaaaaaa-0000-4000-8000-000000000002'];

// S-780: `coracle undelete`, `bin list` and `bin empty` say what there is, what came back and what stands in the way,
//   and on an external server that they need our own.
test('undelete and bin say what there is, what comes back, and what stands in the way', async (t) => {
  const at = openWorkspace(t);
  assert.equal((await at.up()).code, 0);
  const run = (...argv: string[]) => at.run([...argv, '--data-dir', at.data]);
  const uuidOf = async (name: string): Promise<string> =>
    (await at.kubectl(['get', 'vm', name, '-o', 'jsonpath={.spec.template.spec.domain.firmware.uuid}'])).stdout;
  const one = async (uuid: string): Promise<void> => {
    assert.equal((await at.kubectl(['create', '-f', '-'], vm(uuid))).code, 0);
    assert.equal((await at.kubectl(['delete', 'vm', 'db'])).code, 0);
  };
  assert.equal(
    (await run('bin', 'list')).stdout,
    'the bin holds no machine in namespace default (all namespaces: -A)\n',
  );
  const none = await run('undelete', 'vm', 'db');
  assert.deepEqual(
    [none.code, none.stderr],
    [
      1,
      'error: the bin holds no virtual machine default/db (see: coracle bin list -n default; of all namespaces: coracle bin list -A)\n',
    ],
  );
  await one(FIRST);
  // Times in records are of whole seconds.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await one(SECOND);
  const listed = await run('bin', 'list');
  assert.match(
    listed.stdout,
    /^NAMESPACE +NAME +DELETED +BY +EXPIRES +DISKS +SPACE +STATE\ndefault +db .* kubernetes-admin /,
  );
  assert.match(listed.stdout, /\n2 machines, 0 B\n$/);
  const { items } = JSON.parse((await run('bin', 'list', '--json', '-A')).stdout);
  assert.equal(items.length, 2);

  assert.match((await run('undelete', 'dbb')).stderr, /^error: .* machine default\/dbb; did you mean db\? \(see/);
  const back = await run('undelete', 'vm/db');
  assert.equal(back.stdout, 'default/db is back, with 0 disks\n', back.stderr);
  assert.match(back.stderr, /also in the bin: deleted at .*, --record db\.[0-9a-f]{8}/);
  assert.equal(await uuidOf('db'), SECOND, 'the one that was deleted last');
  const taken = await run('undelete', 'vm', 'db');
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /^error: virtual machine default\/db already exists; .*--name NEW\n$/m);
  const json = JSON.parse((await run('undelete', 'db.default', '--name', 'db-old', '--json')).stdout);
  assert.equal(json.name, 'db-old');
  assert.equal(await uuidOf('db-old'), FIRST);

  assert.equal((await at.kubectl(['delete', 'vm', 'db', 'db-old'])).code, 0);
  assert.equal(
    (await run('bin', 'empty', 'vm', 'db', '-n', 'kube-system')).stderr,
    'error: the bin holds no virtual machine kube-system/db (see: coracle bin list -n kube-system; of all namespaces: coracle bin list -A)\n',
  );
  assert.equal((await run('bin', 'empty', 'db.default')).stdout, '1 machine released, with 0 B\n');
  assert.equal((await run('bin', 'empty', '-A')).stdout, '1 machine released, with 0 B\n');
  assert.equal((await run('bin', 'list', '-A')).stdout, 'the bin holds no machine\n');
  assert.equal((await run('bin', 'empty', 'db', '-A')).code, 1);
  assert.equal((await run('bin', 'burn')).code, 1);

  // An external server does not know the kinds.
  const kinds = ['deletedvirtualmachines.coracle.dev', 'deletedvirtualmachinecontents.coracle.dev'];
  assert.equal((await at.kubectl(['delete', 'crd', ...kinds])).code, 0);
  for (const argv of [
    ['undelete', 'vm', 'db'],
    ['bin', 'list'],
    ['bin', 'empty'],
  ]) {
    const { code, stderr } = await run(...argv);
    assert.equal(code, 1);
    assert.match(stderr, /^error: (undelete|bin list|bin empty) needs Coracle's own API server: .*\n$/);
  }
});
