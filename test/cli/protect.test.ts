/** `coracle protect audit`: which machines it lists of a server, and for whom. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openWorkspace } from './workspace.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const vm = (name: string, namespace: string, more: { volume?: string; label?: string } = {}): string => `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: ${name}, namespace: ${namespace}${more.label ? `, labels: {${LABEL}: "${more.label}"}` : ''}}
spec:
  runStrategy: Halted
  template:
    spec:
      domain: {devices: {}, memory: {guest: 64Mi}}
      volumes: [${more.volume ? `{name: data, persistentVolumeClaim: {claimName: ${more.volume}}}` : ''}]
`;

// S-758
test('protect audit lists unprotected machines with data, why, and the command that protects them', async (t) => {
  const at = openWorkspace(t);
  assert.equal((await at.up()).code, 0);
  const audit = (...more: string[]) => at.run(['protect', 'audit', '--data-dir', at.data, ...more]);
  const objects = [
    '\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n',
    vm('empty', 'default'),
    vm('saved', 'default'),
    vm('db', 'shop', { volume: 'db-data' }),
    vm('kept', 'shop', { volume: 'kept-data', label: 'true' }),
    `
apiVersion: snapshot.kubevirt.io/v1beta1
kind: VirtualMachineSnapshot
metadata: {name: nightly, namespace: default}
spec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: saved}}
`,
  ];
  const created = await at.kubectl(['create', '-f', '-'], objects.join('---'));
  assert.equal(created.code, 0, created.stderr);

  const items = async (
    ...more: string[]
  ): Promise<{ name: string; command: string; reasons: { reason: string }[] }[]> =>
    JSON.parse((await audit('-o', 'json', ...more)).stdout).items;
  const [everywhere, ofContext, ofShop, table] = await Promise.all([
    items('-A'),
    items(),
    items('-n', 'shop'),
    audit('-n', 'shop'),
  ]);
  const seen = everywhere.map(({ name, reasons }) => [name, reasons.map(({ reason }) => reason)]);
  assert.deepEqual(seen, [
    ['saved', ['HasSnapshots']],
    ['db', ['OwnsDisks']],
  ]);
  assert.deepEqual(
    ofContext.map(({ name }) => name),
    ['saved'],
    'the namespace of the context',
  );
  const [db] = ofShop;
  assert.match(
    table.stdout,
    /^NAMESPACE +NAME +WHY +TO PROTECT IT\nshop +db +has claims db-data +kubectl label vm db -n shop /,
  );

  const [, ...words] = db!.command.split(' ');
  const labelled = await at.kubectl(words);
  assert.equal(labelled.code, 0, labelled.stderr);
  const none = await audit('-n', 'shop');
  assert.deepEqual(
    [none.code, none.stdout],
    [0, 'no unprotected machine looks precious in namespace shop (all namespaces: -A)\n'],
    'the command did it',
  );

  const wrong = [
    [['protect', 'constructor'], /^error: protect takes: audit/],
    [['protect', 'audit', '-o', 'yaml'], /^error: -o takes json or table/],
    [['protect', 'audit', '-A', '-n', 'shop'], /^error: give --namespace or --all-namespaces/],
  ] as const;
  await Promise.all(
    wrong.map(async ([argv, message]) => {
      const outcome = await at.run(argv);
      assert.deepEqual([outcome.code, outcome.stdout], [1, ''], outcome.stderr);
      assert.match(outcome.stderr, message);
    }),
  );
});
