/** `coracle sync`: plans for people and programs, owners of fields, rules for other tools. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { openWorkspace } from './workspace.ts';

const MACHINE = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: db, namespace: default}
spec:
  runStrategy: Halted
  template: {spec: {domain: {devices: {}, memory: {guest: 64Mi}}}}
`;

// S-941
test('sync plan reads a directory, sync explain an object; both say what is wrong in one line', async (t) => {
  const at = openWorkspace(t);
  assert.equal((await at.up()).code, 0);
  const source = join(at.dir, 'source');
  mkdirSync(source);
  writeFileSync(join(source, 'vm.yaml'), MACHINE);
  const sync = (...argv: string[]) => at.run(['sync', ...argv, '--data-dir', at.data]);

  const [table, json, none] = await Promise.all([
    sync('plan', '--path', source),
    sync('plan', '--path', source, '-o', 'json'),
    sync('plan', 'rootsync/none'),
  ]);
  assert.deepEqual([table.code, table.stderr], [0, '']);
  assert.match(
    table.stdout,
    /^RootSync config-management-system\/root-sync: the files in .*\n\nACTION +OBJECT +VM +WHAT\n/,
  );
  assert.match(table.stdout, /\ncreate +default\/virtualmachine\.kubevirt\.io\/db +none\n\n\d to create\n$/);
  const planned = JSON.parse(json.stdout);
  const [machine] = planned.items.filter(({ ref }: { ref: { kind: string } }) => ref.kind === 'VirtualMachine');
  assert.deepEqual(
    [planned.commit, planned.errors, machine.action, machine.path, machine.vm],
    [null, [], 'create', 'vm.yaml', { effect: 'none' }],
  );
  assert.deepEqual(
    [none.code, none.stderr],
    [1, 'error: there is no RootSync config-management-system/none (to plan files of this host: --path DIR)\n'],
  );

  writeFileSync(join(source, 'bad.yaml'), MACHINE.replace('db,', 'bad,').replace('64Mi', 'much'));
  const refused = await sync('plan', '--path', source);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^KNV2009: failed to apply VirtualMachine\.kubevirt\.io, default\/bad: .*\n$/);

  assert.equal((await at.kubectl(['apply', '--server-side', '-f', '-'], MACHINE)).code, 0);
  const owners = await sync('explain', 'vm/db');
  assert.equal(owners.code, 0, owners.stderr);
  assert.match(owners.stdout, /^VirtualMachine default\/db is managed by no sync\n\nFIELD +OWNER +WHY\n/);
  assert.match(owners.stdout, /\nspec\.runStrategy +kubectl\n/);
  assert.match(owners.stdout, /\nspec\.template\.spec\.domain\.firmware\.uuid +server.*identity of the guest/);

  const wrong = [
    [['explain', 'vm/db/x'], 1, /^error: sync explain takes one object/],
    [['explain', 'nothing/x'], 1, /^error: the server has no kind "nothing"/],
    [['explain', 'vm/none'], 1, /^error: virtualmachines\.kubevirt\.io "none" not found\n$/],
    [['plan', '--path', join(at.dir, 'none')], 1, /^error: there is no directory /],
    [['plan', 'pod/x'], 1, /^error: a sync is named NAME, rootsync\/NAME or reposync\/NAME/],
    [['plan', 'rootsync/x', '-n', 'shop'], 1, /^error: a RootSync is in namespace config-management-system/],
  ] as const;
  await Promise.all(
    wrong.map(async ([argv, code, text]) => {
      const outcome = await sync(...argv);
      assert.deepEqual([outcome.code, outcome.stdout], [code, ''], argv.join(' '));
      assert.match(outcome.stderr, text);
    }),
  );
});

// S-942
test('sync ignore prints YAML of each tool, with the same fields', async (t) => {
  const at = openWorkspace(t);
  const rules = async (tool: string) => parse((await at.run(['sync', 'ignore', '--for', tool])).stdout);
  const [argocd, flux, other] = await Promise.all([rules('argocd'), rules('flux'), at.run(['sync', 'ignore'])]);
  const [machine, claim] = argocd.ignoreDifferences;
  assert.deepEqual([machine.group, machine.kind, claim.group], ['kubevirt.io', 'VirtualMachine', '']);
  assert.ok(machine.jsonPointers.includes('/spec/template/spec/domain/firmware/uuid'));
  assert.ok(machine.jqPathExpressions.includes('.spec.template.spec.domain.devices.interfaces[]?.macAddress'));
  assert.ok(argocd.syncPolicy.syncOptions.includes('RespectIgnoreDifferences=true'));
  assert.deepEqual(flux.ignore[0], {
    target: { group: 'kubevirt.io', kind: 'VirtualMachine' },
    paths: machine.jsonPointers,
  });
  assert.deepEqual([other.code, other.stderr], [1, 'error: sync ignore takes --for argocd or --for flux\n']);
});
