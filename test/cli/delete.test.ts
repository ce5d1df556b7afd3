/** `coracle delete` and `coracle protect status`: what they show of a server, and that a dry run of kubectl says the same. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openWorkspace } from './workspace.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const STOPPED_FIRST = 'coracle.dev/delete-only-when-stopped';
const vm = (name: string, { label = '', finalizer = '', volumes = '', run = 'Halted' } = {}): string => `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: ${name}
  namespace: shop
  labels: {${label}}
  finalizers: [${finalizer}]
spec:
  runStrategy: ${run}
  template: {spec: {domain: {devices: {}, memory: {guest: 64Mi}}, volumes: [${volumes}]}}
`;
const secret = (name: string): string => `{name: ${name}, secret: {secretName: ${name}}}`;

const OBJECTS = [
  '\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n',
  '\napiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: shop}\n',
  vm('db', { label: `${LABEL}: "true"`, volumes: `${secret('keys')}, ${secret('absent')}` }),
  vm('web', { volumes: secret('keys') }),
  vm('stuck', { finalizer: 'example.com/hold' }),
  vm('busy', { label: `${STOPPED_FIRST}: "true"`, run: 'Always' }),
  `
apiVersion: snapshot.kubevirt.io/v1beta1
kind: VirtualMachineSnapshot
metadata: {name: nightly, namespace: shop}
spec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: db}}
`,
];

// S-794: `coracle delete vm NAME --what-if` says what a dry run of the DELETE says, as `kubectl delete
//   --dry-run=server` does, and shows what would go by the rule of the garbage collector, what other protected machines
//   hold back, what stays and who shares it, what is missing, and the finalizers of what would go; of a namespace the
//   protected machines in it.
// S-795: It names what stands against the deletion, the command that lifts each, whether the caller may, and who else
//   is granted that, where the caller may read it.
// S-796: `coracle delete vm NAME...` deletes and waits until the machines are gone; a refusal is one line with the way out,
//   a deletion that takes too long names what holds it.
// S-797: `coracle protect status` lists protected machines with what each keeps and what of that is missing; of one
//   machine also by which field, who shares it, and who may lift the protection.
// S-798: Both commands work where the server has no object graph of ours, and for who may read little: what may not be
//   read is unknown, and named.
test('delete and protect status say what the server says, why, and what to do', { timeout: 600_000 }, async (t) => {
  const at = openWorkspace(t);
  assert.equal((await at.up()).code, 0);
  const coracle = (...argv: string[]) => at.run([...argv, '--data-dir', at.data]);
  const created = await at.kubectl(['create', '-f', '-'], OBJECTS.join('---'));
  assert.equal(created.code, 0, created.stderr);
  // Objects that it owns: one that no graph has, and one that the protected machine needs.
  const uid = (await at.kubectl(['get', 'vm', 'web', '-n', 'shop', '-o', 'jsonpath={.metadata.uid}'])).stdout;
  const owner = `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: ${uid}}`;
  const notes = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: shop, ownerReferences: [${owner}]}\n`;
  assert.equal((await at.kubectl(['create', '-f', '-'], notes)).code, 0);
  const owned = JSON.stringify({
    metadata: { ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'web', uid }] },
  });
  const patched = await at.kubectl(['patch', 'secret', 'keys', '-n', 'shop', '--type=merge', '-p', owned]);
  assert.equal(patched.code, 0, patched.stderr);

  const preview = async (...argv: string[]) => {
    const { code, stdout, stderr } = await coracle('delete', ...argv, '--what-if', '-o', 'json');
    assert.equal(stderr, '');
    const json = JSON.parse(stdout);
    assert.equal(code, json.verdict.allowed ? 0 : 1);
    return json;
  };
  // The content of the snapshot comes when it comes.
  const fates = ({ objects }: { objects: { kind: string; name: string; fate: string; usedBy?: string[] }[] }) =>
    objects
      .filter(({ kind }) => kind !== 'VirtualMachineSnapshotContent')
      .map(({ kind, name, fate, usedBy = [] }) => [`${kind}/${name}`, fate, ...usedBy].join(' '));

  // The protected one.
  const [text, db, web, kubectlDb, kubectlWeb, shop, kubectlShop] = await Promise.all([
    coracle('delete', 'vm', 'db', '-n', 'shop', '--what-if'),
    preview('vm/db.shop'),
    preview('vm', 'web', '-n', 'shop'),
    at.kubectl(['delete', 'vm', 'db', '-n', 'shop', '--dry-run=server']),
    at.kubectl(['delete', 'vm', 'web', '-n', 'shop', '--dry-run=server']),
    preview('namespace', 'shop'),
    at.kubectl(['delete', 'namespace', 'shop', '--dry-run=server']),
  ]);
  const words = `VirtualMachine db cannot be deleted, disable/remove label '${LABEL}' from VirtualMachine before deleting it`;
  assert.equal(text.code, 1);
  assert.match(text.stdout, /^VirtualMachine shop\/db would not be deleted: .*cannot be deleted/);
  assert.match(text.stdout, /^label kubevirt\.io\/vm-delete-protection=true +kubectl label vm db -n shop \S+- +you; /m);
  assert.match(text.stdout, /^Secret +keys +stays +vm\/web$/m);
  assert.match(text.stdout, /^VirtualMachine\/db +kubevirt\.io\/virtualMachineControllerFinalize +virt-controller/m);
  assert.deepEqual([db.verdict.code, db.verdict.message.endsWith(words)], [422, true]);
  assert.deepEqual(fates(db), [
    'Secret/keys Kept VirtualMachine/web',
    'Secret/absent Missing',
    'VirtualMachineSnapshot/nightly Kept',
  ]);
  assert.ok(kubectlDb.stderr.includes(words), kubectlDb.stderr);
  assert.deepEqual([kubectlDb.code, web.verdict, kubectlWeb.code], [1, { allowed: true }, 0]);
  assert.deepEqual(fates(web), ['Secret/keys Held VirtualMachine/db', 'ConfigMap/notes Deleted']);

  // One that is to be stopped first, and what goes with an instance.
  const launcher = ['get', 'pods', '-n', 'shop', '-l', 'kubevirt.io=virt-launcher', '-o', 'name'];
  while ((await at.kubectl(launcher)).stdout === '') await new Promise((wake) => setTimeout(wake, 200));
  const busy = await preview('vm', 'busy', '-n', 'shop');
  assert.deepEqual(
    [busy.verdict.code, busy.blocks.map(({ reason, command }: Record<string, string>) => `${reason}: ${command}`)],
    [403, ['DeleteOnlyWhenStopped: virtctl stop busy -n shop']],
  );
  assert.ok(busy.verdict.message.endsWith(busy.blocks[0].message), busy.verdict.message);
  assert.deepEqual(
    fates(busy)
      .slice(0, 2)
      .map((text) => text.replace(/-busy-\w+/, '-busy')),
    ['VirtualMachineInstance/busy Deleted', 'Pod/virt-launcher-busy Deleted'],
  );

  // Its namespace.
  assert.deepEqual(
    shop.machines.map((each: { name: string }) => each.name),
    ['db'],
  );
  assert.equal(kubectlShop.code, shop.verdict.allowed ? 0 : 1);
  assert.equal(shop.verdict.allowed, false, JSON.stringify(shop.verdict));
  assert.ok(kubectlShop.stderr.includes(shop.verdict.message), kubectlShop.stderr);
  assert.equal(
    shop.counts.find((each: { resource: string }) => each.resource === 'virtualmachines.kubevirt.io').count,
    4,
  );

  // A refusal is one line, with the way out; the other ways to call it wrong.
  const refused = await coracle('delete', 'vm', 'db.shop');
  assert.deepEqual([refused.code, refused.stdout, refused.stderr.split('\n').length], [1, '', 2]);
  assert.match(
    refused.stderr,
    /^error: .* before deleting it \(kubectl label vm db -n shop \S+-; all that holds it: coracle delete vm db -n shop --what-if\)\n$/,
  );
  const wrong: [argv: string[], code: number, message: RegExp][] = [
    [['delete'], 1, /^error: delete takes machines \(\[vm\] NAME\.\.\.\) or namespace NAME/],
    [['delete', 'vm'], 1, /^error: delete takes machines/],
    [['delete', 'vmi/db'], 1, /^error: delete takes machines/],
    [['delete', 'nobody'], 1, /^error: there is no machine default\/nobody \(coracle list -A/],
    [['delete', 'wbe', '-n', 'shop'], 1, /^error: there is no machine shop\/wbe; did you mean web\?/],
    [['delete', 'pod/x'], 1, /^error: a machine is named NAME, vm\/NAME, .*, not "pod\/x"\n/],
    [['delete', 'pod', 'db', '-n', 'shop'], 1, /^error: there is no machine shop\/pod/],
    [['delete', 'vm', 'db', 'nobody', '-n', 'shop'], 1, /^error: there is no machine shop\/nobody/],
    [['delete', 'vm', 'db', '--wait=perhaps'], 1, /^error: --wait takes true or false/],
    [['delete', 'vm', 'nobody', '-n', 'shop'], 1, /^error: there is no machine shop\/nobody/],
    [['delete', 'namespace', 'nobody'], 1, /^error: there is no namespace nobody/],
    [['protect', 'status', 'vm', 'db', 'x'], 1, /^error: protect status takes one machine/],
    [['protect', 'status', 'db', '-A'], 1, /^error: give a VM or --all-namespaces/],
    [['protect', 'status', 'wbe', '-n', 'shop'], 1, /^error: there is no machine shop\/wbe; did you mean web\?/],
  ];
  await Promise.all(
    wrong.map(async ([argv, code, message]) => {
      const outcome = await coracle(...argv);
      assert.equal(outcome.code, code, `${argv.join(' ')}: ${outcome.stderr}`);
      assert.match(outcome.stderr, message);
    }),
  );

  // What is protected, and what of it is missing.
  const [table, none, one, json] = await Promise.all([
    coracle('protect', 'status', '-A'),
    coracle('protect', 'status'),
    coracle('protect', 'status', 'vm', 'db', '-n', 'shop'),
    coracle('protect', 'status', 'db.shop', '-o', 'json'),
  ]);
  assert.match(table.stdout, /^NAMESPACE .*\nshop +db +no +1 Secret +Secret\/absent\n$/);
  assert.deepEqual(
    [none.code, none.stdout],
    [0, 'no machine is protected in namespace default (all namespaces: -A)\n'],
  );
  assert.match(one.stdout, /^VirtualMachine shop\/db is protected\n/);
  assert.match(one.stdout, /^who may lift the protection: you; .*ClusterRoleBinding /m);
  assert.match(one.stdout, /^Secret +absent +missing +spec\.template\.spec\.volumes\[1\]\.secret\.secretName$/m);
  const { parts, whoMay } = JSON.parse(json.stdout);
  assert.deepEqual([parts.length, parts[0].usedBy, whoMay.you], [2, ['web'], true]);

  // Without the server's graph (and to a user who may only view) the same is put together from the objects.
  const needs = 'coracle.dev/unprotect-needs-permission=true';
  assert.equal((await at.kubectl(['annotate', 'kubevirt', 'kubevirt', '-n', 'kubevirt', needs])).code, 0);
  const gates = '{"spec":{"configuration":{"developerConfiguration":{"featureGates":[]}}}}';
  const off = await at.kubectl(['patch', 'kubevirt', 'kubevirt', '-n', 'kubevirt', '--type=merge', '-p', gates]);
  assert.equal(off.code, 0, off.stderr);
  const [viewer, editor] = await Promise.all([kubeconfigOf('view'), kubeconfigOf('edit')]);
  const [again, asEditor, asViewer] = await Promise.all([
    preview('vm', 'db', '-n', 'shop'),
    at.run(['delete', 'vm', 'db', '-n', 'shop', '--what-if', '-o', 'json', '--kubeconfig', editor]),
    at.run(['delete', 'vm', 'db', '-n', 'shop', '--what-if', '-o', 'json', '--kubeconfig', viewer]),
  ]);
  assert.deepEqual(fates(again), fates(db));
  const { verdict, blocks } = JSON.parse(asEditor.stdout);
  assert.deepEqual(
    [verdict.code, blocks[0].whoMay.you, blocks[0].whoMay.verbs],
    [422, false, ['patch', 'update', 'unprotect']],
    'who may change the machine may not unprotect it',
  );
  const seen = JSON.parse(asViewer.stdout);
  assert.deepEqual([asViewer.code, seen.verdict.code, seen.blocks[0].whoMay.you], [1, 403, false]);
  assert.equal(seen.blocks[0].whoMay.grants, undefined, 'a viewer may not read RBAC');
  assert.deepEqual(fates(seen), [
    'Secret/keys Unknown',
    'Secret/absent Unknown',
    'VirtualMachineSnapshot/nightly Kept',
  ]);
  assert.ok(seen.notListed.includes('secrets'), seen.notListed.join());

  // Deletions.
  const gone = await coracle('delete', 'vm', 'web', '-n', 'shop');
  assert.deepEqual(
    [gone.code, gone.stdout],
    [0, 'virtualmachine.kubevirt.io "web" deleted from shop namespace\n'],
    gone.stderr,
  );
  assert.equal((await at.kubectl(['get', 'vm', 'web', '-n', 'shop'])).code, 1);
  const notesGone = ['wait', 'cm/notes', '-n', 'shop', '--for=delete', '--timeout=60s'];
  assert.equal((await at.kubectl(notesGone)).code, 0, 'it goes with the machine');
  assert.equal((await at.kubectl(['get', 'secret', 'keys', '-n', 'shop'])).code, 0, 'it was to be held back');
  const held = await coracle('delete', 'vm', 'stuck', '-n', 'shop', '--timeout', '2');
  assert.equal(held.code, 1);
  assert.match(
    held.stderr,
    /^waiting until shop\/stuck is gone, held by .*\nerror: shop\/stuck is being deleted and still there after 2 s, held by .*example\.com\/hold/,
  );
  const left = await coracle('delete', 'vm', 'stuck', '-n', 'shop', '--wait=false', '-o', 'json');
  assert.deepEqual([left.code, JSON.parse(left.stdout).gone], [0, false]);

  // Several at once: all, or none where one is not there.
  const pair = ['one', 'two'].map(
    (name) =>
      `apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: ${name}, namespace: shop}\nspec: {runStrategy: Halted, template: {spec: {domain: {devices: {}, memory: {guest: 64Mi}}}}}\n`,
  );
  assert.equal((await at.kubectl(['create', '-f', '-'], pair.join('---\n'))).code, 0);
  const neither = await coracle('delete', 'one', 'three', '-n', 'shop');
  assert.deepEqual([neither.code, neither.stdout], [1, '']);
  assert.match(neither.stderr, /^error: there is no machine shop\/three/);
  const both = await coracle('delete', 'vm', 'one', 'two', '-n', 'shop');
  assert.deepEqual(
    [both.code, both.stdout.match(/"\w+" deleted/g)],
    [0, ['"one" deleted', '"two" deleted']],
    both.stderr,
  );

  const [, ...lift] = db.blocks[0].command.split(' ');
  assert.equal((await at.kubectl(lift)).code, 0, 'the command that the preview gave');
  assert.deepEqual((await coracle('delete', 'vm', 'db', '-n', 'shop')).code, 0);

  /** Of an account with a ClusterRole in the namespace. */
  async function kubeconfigOf(account: 'view' | 'edit'): Promise<string> {
    await at.kubectl(['create', 'serviceaccount', account, '-n', 'shop']);
    const subject = `--serviceaccount=shop:${account}`;
    await at.kubectl(['create', 'rolebinding', account, '-n', 'shop', `--clusterrole=${account}`, subject]);
    const token = (await at.kubectl(['create', 'token', account, '-n', 'shop'])).stdout.trim();
    const config = JSON.parse((await at.kubectl(['config', 'view', '--raw', '-o', 'json'])).stdout);
    config.users = config.users.map(({ name }: { name: string }) => ({ name, user: { token } }));
    const file = join(at.dir, `${account}.json`);
    writeFileSync(file, JSON.stringify(config));
    return file;
  }
});
