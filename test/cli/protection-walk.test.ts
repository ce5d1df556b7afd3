/**
 * A new user's walk along docs/guide/protection.md, with the real kubectl and the commands, on one control plane with a
 * node: a machine is protected with one label, cannot be destroyed in any way, the refusals say why, the protection is
 * lifted by somebody with the right to, the machine is deleted, and comes back with its disk.
 */
// test:full: every combination of flags or steps, a process each.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Outcome, openWorkspace } from './workspace.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const POLICY = 'kubevirt-vm-deletion-protection';
const UUID = 'aaaaaaaa-0000-4000-8000-000000000950';
const MANIFEST = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: db-init, namespace: shop}
stringData: {userdata: "#cloud-config"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: db-conf, namespace: shop}
data: {colour: blue}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineInstancetype
metadata: {name: small, namespace: shop}
spec: {cpu: {guest: 1}, memory: {guest: 64Mi}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: db, namespace: shop, labels: {app: db}}
spec:
  runStrategy: Halted
  instancetype: {kind: VirtualMachineInstancetype, name: small}
  template:
    spec:
      domain: {devices: {}, firmware: {uuid: ${UUID}}}
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: db-data}}
      - {name: init, cloudInitNoCloud: {secretRef: {name: db-init}}}
      - {name: conf, configMap: {name: db-conf}}
`;
const claimOf = (uid: string): string => `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: db-data
  namespace: shop
  ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: db, uid: ${uid}}]
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}
`;

// S-951: A machine that is protected with one label is destroyed by no command of kubectl or coracle, each refusal says
//   why, somebody with the right to lifts the protection, and the machine is deleted and comes back with its disk and
//   identity.
test('protect, fail to destroy, read why, lift, delete, undelete', { timeout: 600_000 }, async (t) => {
  const at = openWorkspace(t);
  // The later of two flags counts: volumes lie on a node.
  assert.equal((await at.up('--nodes', '1')).code, 0);
  const kubectl = (...argv: string[]) => at.kubectl(argv);
  const coracle = (...argv: string[]) => at.run([...argv, '--data-dir', at.data]);
  const done = async (running: Promise<Outcome>): Promise<string> => {
    const { code, stdout, stderr } = await running;
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const field = (path: string, ...what: string[]) =>
    done(kubectl('get', '-n', 'shop', ...what, '-o', `jsonpath={${path}}`));

  // A machine, the disk that goes with it, and one label.
  await done(at.kubectl(['apply', '-f', '-'], MANIFEST));
  await done(at.kubectl(['create', '-f', '-'], claimOf(await field('.metadata.uid', 'vm', 'db'))));
  await done(kubectl('wait', '-n', 'shop', 'pvc/db-data', '--for=jsonpath={.status.phase}=Bound', '--timeout=60s'));
  const volume = await field('.spec.volumeName', 'pvc', 'db-data');
  const revision = await field('.status.instancetypeRef.controllerRevisionRef.name', 'vm', 'db');
  const handle = await field('.spec.csi.volumeHandle', 'pv', volume);
  await done(kubectl('label', 'vm', 'db', '-n', 'shop', `${LABEL}=true`));

  // No way to destroy it, and each refusal says why.
  const own = /VirtualMachine db cannot be deleted, disable\/remove label 'kubevirt\.io\/vm-delete-protection'/;
  const named = (why: string): RegExp =>
    new RegExp(`is forbidden: protected VirtualMachine shop/db ${why}; disable/remove label '${LABEL}' from that`);
  const refers = (path: string): RegExp => named(`\\(${path}\\) refers to it`);
  const spec = 'spec\\.template\\.spec\\.volumes\\[';
  const ways: readonly [argv: string[], why: RegExp, input?: string][] = [
    [['vm', 'db', '-n', 'shop'], own],
    [['vm', 'db', '-n', 'shop', '--cascade=orphan'], own],
    [['vm', 'db', '-n', 'shop', '--cascade=foreground'], own],
    [['vm', 'db', '-n', 'shop', '--force', '--grace-period=0'], own],
    [['vm', 'db', '-n', 'shop', '--dry-run=server'], own],
    [['vm', '--all', '-n', 'shop'], own],
    [['vm', '-l', 'app=db', '-n', 'shop'], own],
    [['-f', '-'], own, MANIFEST.slice(MANIFEST.lastIndexOf('---'))],
    [['--raw', '/apis/kubevirt.io/v1/namespaces/shop/virtualmachines'], own],
    [['secret', 'db-init', '-n', 'shop'], refers(`${spec}1\\]\\.cloudInitNoCloud\\.secretRef\\.name`)],
    [['--raw', '/api/v1/namespaces/shop/secrets'], /none of the \d+ objects of the collection was deleted/],
    [['configmap', 'db-conf', '-n', 'shop'], refers(`${spec}2\\]\\.configMap\\.name`)],
    [['pvc', '--all', '-n', 'shop'], refers(`${spec}0\\]\\.persistentVolumeClaim\\.claimName`)],
    [['pv', volume], refers(`claim shop/db-data, ${spec}0\\]\\.persistentVolumeClaim\\.claimName`)],
    [['controllerrevision', revision, '-n', 'shop'], refers('status\\.instancetypeRef\\.controllerRevisionRef\\.name')],
    [['namespace', 'shop'], named('is in it')],
    [['kubevirt', 'kubevirt', '-n', 'kubevirt'], named('exists')],
    [['namespace', 'kubevirt'], named('\\(run by KubeVirt kubevirt, which is in it\\) exists')],
    [['crd', 'virtualmachines.kubevirt.io'], /the kind is built into this server and cannot be taken away/],
  ];
  await Promise.all(
    ways.map(async ([argv, why, input]) => {
      const { code, stderr } = await at.kubectl(['delete', ...argv], input);
      assert.equal(code, 1, argv.join(' '));
      assert.match(stderr, why, argv.join(' '));
    }),
  );
  // Its policy may be deleted, and comes back by itself.
  await done(kubectl('delete', 'validatingadmissionpolicybinding', POLICY));
  const isBack = `{.spec.policyName}=${POLICY}`;
  for (let tries = 0; (await kubectl('get', 'validatingadmissionpolicybinding', POLICY)).code !== 0; tries++)
    assert.ok(tries < 200, 'the binding did not come back');
  await done(kubectl('wait', `validatingadmissionpolicybinding/${POLICY}`, `--for=jsonpath=${isBack}`));
  const refused = await coracle('delete', 'vm', 'db.shop');
  assert.match(refused.stderr, own);

  // Why, afterwards: the events, the counter, the commands.
  const [events, metrics, preview, status] = await Promise.all([
    done(kubectl('events', '--for', 'vm/db', '--types=Warning', '-n', 'shop')),
    done(kubectl('get', '--raw', '/metrics')),
    coracle('delete', 'vm', 'db', '-n', 'shop', '--what-if'),
    done(coracle('protect', 'status', 'vm', 'db', '-n', 'shop')),
  ]);
  assert.match(
    events,
    /DeletionRefused .*not deleted, as "kubernetes-admin" asked: VirtualMachine db cannot be deleted/,
  );
  assert.match(events, /Secret shop\/db-init was not deleted, as "kubernetes-admin" asked: this machine needs it/);
  assert.match(events, /Namespace shop was not deleted, as "kubernetes-admin" asked: this machine is protected/);
  assert.match(metrics, /^coracle_protection_refusals_total\{kind="VirtualMachine",reason="DeleteProtected"\} [1-9]/m);
  assert.match(metrics, /^coracle_protection_refusals_total\{kind="Secret",reason="Referenced"\} [1-9]/m);
  assert.equal(preview.code, 1);
  assert.match(preview.stdout, /^VirtualMachine shop\/db would not be deleted: /);
  assert.match(preview.stdout, /^PersistentVolumeClaim +db-data +deleted/m);
  assert.match(status, /^VirtualMachine shop\/db is protected\n/);

  // The right to lift it is one of its own.
  const asDev = (...argv: string[]) => kubectl(...argv, '-n', 'shop', '--as=dev');
  await done(kubectl('create', 'rolebinding', 'dev', '-n', 'shop', '--clusterrole=edit', '--user=dev'));
  const needed = 'coracle.dev/unprotect-needs-permission=true';
  await done(kubectl('annotate', 'kubevirt', 'kubevirt', '-n', 'kubevirt', needed));
  const forbidden = await asDev('label', 'vm', 'db', `${LABEL}-`);
  assert.equal(forbidden.code, 1);
  const [, ...grant] = /An administrator grants it with: (kubectl create rolebinding .*--user=dev)$/m
    .exec(forbidden.stderr)![1]!
    .split(' ');
  await done(kubectl(...grant));
  await done(asDev('label', 'vm', 'db', `${LABEL}-`));

  // Deleted it is gone, with its disk; nothing stays behind half deleted.
  await done(asDev('delete', 'vm', 'db', '--timeout=60s'));
  await done(kubectl('wait', '-n', 'shop', 'pvc/db-data', '--for=delete', '--timeout=60s'));
  assert.match(await done(coracle('bin', 'list', '-n', 'shop')), /^shop +db +\S+ +dev +\S+ +1 /m);
  assert.match(await done(coracle('bin', 'list')), /^the bin holds no machine in namespace default/);

  // It comes back as it was: the same volume, the same identity.
  assert.equal(await done(coracle('undelete', 'vm', 'db.shop')), 'shop/db is back, with 1 disk\n');
  assert.equal(await field('.spec.template.spec.domain.firmware.uuid', 'vm', 'db'), UUID);
  const again = await field('.spec.volumeName', 'pvc', 'db-data');
  assert.equal(await field('.spec.csi.volumeHandle', 'pv', again), handle);
  assert.equal(await field('.status.instancetypeRef.controllerRevisionRef.name', 'vm', 'db'), revision);

  // And its namespace goes to the last object once nothing in it is protected.
  await done(kubectl('delete', 'namespace', 'shop', '--timeout=60s'));
});
