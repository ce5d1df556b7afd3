/**
 * What a protected machine stands on, and what holds it, is not deleted, by any way a client has; once the machine is
 * unprotected it is. The rules themselves are tested in `domain/protection`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Answer, startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const ADMIN: readonly [string, string] = ['admin', 'system:masters'];
/** Who passes elsewhere: here nobody does by name. */
const SYSTEM: readonly (readonly [string, ...string[]])[] = [
  ADMIN,
  ['system:serviceaccount:kube-system:generic-garbage-collector', 'system:masters'],
  ['system:serviceaccount:kube-system:namespace-controller', 'system:masters'],
  ['system:kube-controller-manager', 'system:masters'],
  ['system:serviceaccount:kubevirt:kubevirt-controller', 'system:masters'],
  ['system:serviceaccount:kubevirt:coracle-vm', 'system:masters'],
];

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

let plane: TestPlane;
before(
  async () => {
    plane = await startPlane();
    await plane.run(['protection', 'namespace-controller'], { rootCa: '' });
    await eventually(
      () => plane.ask('GET /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings', { as: ADMIN }),
      ({ json }) => json.items.length > 0,
    );
  },
  { timeout: 600_000 },
);
after(() => plane.stop());

const core = (namespace: string, resource: string): string => `/api/v1/namespaces/${namespace}/${resource}`;
const machines = (namespace: string): string => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;
const machine = (name: string, template: object = {}, labels: object = { [LABEL]: 'true' }, spec: object = {}) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, labels },
  spec: {
    runStrategy: 'Halted',
    ...spec,
    template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, ...template } },
  },
});
const volume = (source: object): object => ({ volumes: [{ name: 'disk', ...source }] });
const claim = (name: string, metadata: object = {}): object => ({
  metadata: { name, ...metadata },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
});
const makeNamespace = (name: string): Promise<Any> => plane.admin('POST /api/v1/namespaces', { metadata: { name } });
/** Takes the finalizer off, too: no controller of machines runs here that would, and no guest. */
const unprotect = (namespace: string, name = 'vm'): Promise<Any> =>
  plane.admin(`PATCH ${machines(namespace)}/${name}`, { metadata: { labels: { [LABEL]: 'False' }, finalizers: null } });
const remove = (path: string, body?: object, as: readonly [string, ...string[]] = ADMIN): Promise<Answer> =>
  plane.ask(`DELETE ${path}`, { as, ...(body && { body }) });
const isThere = async (path: string): Promise<boolean> => {
  const { status, json } = await plane.ask(`GET ${path}`, { as: ADMIN });
  return status === 200 && json.metadata.deletionTimestamp === undefined;
};

interface Row {
  readonly what: string;
  readonly path: (namespace: string) => string;
  readonly object: Any;
  readonly template?: object;
  readonly spec?: object;
  readonly why: string;
}
const F = 'spec.template.spec.volumes[0]';
const secret = { metadata: { name: 'part' }, stringData: { userdata: 'x' } };
const secrets = (namespace: string): string => core(namespace, 'secrets');
const claims = (namespace: string): string => core(namespace, 'persistentvolumeclaims');
const revisions = (namespace: string): string => `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`;
const dataVolumes = (namespace: string): string => `/apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes`;

const ROWS: readonly Row[] = [
  {
    what: 'PersistentVolumeClaim',
    path: claims,
    object: claim('part'),
    template: volume({ persistentVolumeClaim: { claimName: 'part' } }),
    why: `${F}.persistentVolumeClaim.claimName`,
  },
  {
    what: 'claim of a DataVolume',
    path: claims,
    object: claim('part'),
    template: volume({ dataVolume: { name: 'part' } }),
    why: `${F}.dataVolume.name`,
  },
  {
    what: 'DataVolume',
    path: dataVolumes,
    object: {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'part' },
      spec: {
        source: { blank: {} },
        pvc: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
      },
    },
    template: volume({ dataVolume: { name: 'part' } }),
    why: `${F}.dataVolume.name`,
  },
  {
    what: 'Secret',
    path: secrets,
    object: secret,
    template: volume({ secret: { secretName: 'part' } }),
    why: `${F}.secret.secretName`,
  },
  {
    what: 'Secret of cloud-init',
    path: secrets,
    object: secret,
    template: volume({ cloudInitNoCloud: { secretRef: { name: 'part' } } }),
    why: `${F}.cloudInitNoCloud.secretRef.name`,
  },
  {
    what: 'Secret of access credentials',
    path: secrets,
    object: secret,
    template: {
      ...volume({ cloudInitNoCloud: { userData: '#cloud-config' } }),
      accessCredentials: [
        { sshPublicKey: { source: { secret: { secretName: 'part' } }, propagationMethod: { noCloud: {} } } },
      ],
    },
    why: 'spec.template.spec.accessCredentials[0].sshPublicKey.source.secret.secretName',
  },
  {
    what: 'ConfigMap',
    path: (namespace) => core(namespace, 'configmaps'),
    object: { metadata: { name: 'part' }, data: { a: 'b' } },
    template: volume({ configMap: { name: 'part' } }),
    why: `${F}.configMap.name`,
  },
  {
    what: 'ServiceAccount',
    path: (namespace) => core(namespace, 'serviceaccounts'),
    object: { metadata: { name: 'part' } },
    template: volume({ serviceAccount: { serviceAccountName: 'part' } }),
    why: `${F}.serviceAccount.serviceAccountName`,
  },
  {
    what: 'ControllerRevision',
    path: revisions,
    object: {
      metadata: { name: 'part' },
      revision: 0,
      data: {
        apiVersion: 'instancetype.kubevirt.io/v1beta1',
        kind: 'VirtualMachinePreference',
        metadata: { name: 'p' },
        spec: {},
      },
    },
    spec: { preference: { kind: 'VirtualMachinePreference', name: 'p', revisionName: 'part' } },
    why: 'spec.preference.revisionName',
  },
  {
    what: 'firmware state',
    path: claims,
    object: claim('part', { labels: { 'persistent-state-for': 'vm' } }),
    why: 'label persistent-state-for of the claim',
  },
];

describe('what a protected machine refers to', () => {
  for (const [index, row] of ROWS.entries()) {
    // S-703: Whatever a protected machine refers to is not deleted, by anybody: alone, with any propagation policy, in
    //   a dry run or in a collection; the refusal (403) names the machine and the field. Unprotected, or being deleted
    //   itself, the machine guards nothing.
    it(`${row.what} stays, whoever deletes it and how, until the machine is unprotected`, async () => {
      const namespace = `part-${index}`;
      await makeNamespace(namespace);
      const path = `${row.path(namespace)}/part`;
      await plane.admin(`POST ${row.path(namespace)}`, row.object);
      await plane.admin(`POST ${machines(namespace)}`, machine('vm', row.template, {}, row.spec));
      await plane.admin(`PATCH ${machines(namespace)}/vm`, { metadata: { labels: { [LABEL]: 'True' } } });
      const isRefused = ({ status, json }: Answer, what: string): void => {
        assert.equal(status, 403, `${what}: ${JSON.stringify(json)}`);
        const text = `protected VirtualMachine ${namespace}/vm (${row.why}) refers to it; disable/remove label '${LABEL}' from that VirtualMachine before deleting it`;
        assert.ok(json.message.includes(text), `${what}: ${json.message}`);
      };
      for (const as of SYSTEM) isRefused(await remove(path, undefined, as), as[0]);
      for (const propagationPolicy of ['Background', 'Foreground', 'Orphan'])
        isRefused(await remove(path, { propagationPolicy }), propagationPolicy);
      isRefused(await remove(path, { gracePeriodSeconds: 0 }), 'at once');
      isRefused(await remove(`${path}?dryRun=All`), 'a dry run');
      isRefused(await remove(row.path(namespace)), 'the collection');
      isRefused(await remove(`${row.path(namespace)}?dryRun=All`), 'the collection, in a dry run');
      isRefused(await remove(`${row.path(namespace)}?fieldSelector=metadata.name%3Dpart`), 'selected');
      assert.ok(await isThere(path));
      // Other writes of it pass.
      await plane.admin(`PATCH ${path}`, { metadata: { annotations: { note: 'x' } } });
      await unprotect(namespace);
      assert.equal((await remove(`${path}?dryRun=All`)).status, 200);
      assert.equal((await remove(path)).status, 200);
      assert.ok(!(await isThere(path)));
    });
  }

  // S-703
  it('PersistentVolume of its claim stays', async () => {
    await makeNamespace('volumes');
    const { metadata } = await plane.admin(`POST ${claims('volumes')}`, claim('data'));
    const path = '/api/v1/persistentvolumes';
    await plane.admin(`POST ${path}`, {
      metadata: { name: 'pv' },
      spec: {
        capacity: { storage: '1Mi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/x' },
        claimRef: { namespace: 'volumes', name: 'data', uid: metadata.uid },
      },
    });
    await plane.admin(
      `POST ${machines('volumes')}`,
      machine('vm', volume({ persistentVolumeClaim: { claimName: 'data' } })),
    );
    const { status, json } = await remove(`${path}/pv`);
    assert.equal(status, 403);
    assert.match(json.message, /protected VirtualMachine volumes\/vm \(claim volumes\/data, .*\) refers to it/);
    await unprotect('volumes');
    assert.equal((await remove(`${path}/pv`)).status, 200);
  });

  // S-703
  it('a part that two machines share stays until both are unprotected', async () => {
    await makeNamespace('shared');
    await plane.admin(`POST ${secrets('shared')}`, secret);
    for (const name of ['a', 'b'])
      await plane.admin(`POST ${machines('shared')}`, machine(name, volume({ secret: { secretName: 'part' } })));
    const path = `${secrets('shared')}/part`;
    const { json } = await remove(path);
    assert.match(json.message, /2 protected VirtualMachines refer to it: shared\/a \(.*\), shared\/b \(/);
    assert.deepEqual(
      json.details.causes.map(({ reason }: Any) => reason),
      ['ProtectedVirtualMachine', 'ProtectedVirtualMachine'],
    );
    await unprotect('shared', 'a');
    assert.equal((await remove(path)).status, 403);
    await unprotect('shared', 'b');
    assert.equal((await remove(path)).status, 200);
  });

  // S-703
  it('a reference counts while it is there: added, taken away, put elsewhere', async () => {
    await makeNamespace('moves');
    for (const name of ['one', 'two']) await plane.admin(`POST ${secrets('moves')}`, { metadata: { name } });
    await plane.admin(`POST ${machines('moves')}`, machine('vm'));
    const refer = (secretName: string | null): Promise<Any> =>
      plane.admin(`PATCH ${machines('moves')}/vm`, {
        spec: { template: { spec: { volumes: secretName === null ? null : [{ name: 'd', secret: { secretName } }] } } },
      });
    const stays = async (...expected: string[]): Promise<void> => {
      for (const name of ['one', 'two']) {
        const { status } = await remove(`${secrets('moves')}/${name}?dryRun=All`);
        assert.equal(status, expected.includes(name) ? 403 : 200, name);
      }
    };
    await stays();
    await refer('one');
    await stays('one');
    await refer('two');
    await stays('two');
    await refer(null);
    await stays();
    await unprotect('moves');
  });

  // S-703
  it('what is on its way out already goes on: it is not decided again, and its finalizers can be removed', async () => {
    await makeNamespace('under-way');
    const path = `${secrets('under-way')}/part`;
    await plane.admin(`POST ${secrets('under-way')}`, {
      ...secret,
      metadata: { name: 'part', finalizers: ['example.com/hold'] },
    });
    await plane.admin(`DELETE ${path}`);
    await plane.admin(`POST ${machines('under-way')}`, machine('vm', volume({ secret: { secretName: 'part' } })));
    assert.equal((await remove(path)).status, 200);
    await plane.admin(`PATCH ${path}`, { metadata: { finalizers: [] } });
    assert.equal((await plane.ask(`GET ${path}`, { as: ADMIN })).status, 404);
    await unprotect('under-way');
  });

  // S-703
  it('its own deletion takes the parts with it: a machine that is being deleted guards nothing', async () => {
    await makeNamespace('going');
    await plane.admin(`POST ${secrets('going')}`, secret);
    const vm = machine('vm', volume({ secret: { secretName: 'part' } }), {});
    await plane.admin(`POST ${machines('going')}`, {
      ...vm,
      metadata: { ...vm.metadata, finalizers: ['example.com/hold'] },
    });
    await plane.admin(`DELETE ${machines('going')}/vm`);
    await plane.admin(`PATCH ${machines('going')}/vm`, { metadata: { labels: { [LABEL]: 'true' } } });
    assert.equal((await remove(`${secrets('going')}/part`)).status, 200);
    await plane.admin(`PATCH ${machines('going')}/vm`, { metadata: { finalizers: [] } });
  });
});

describe('what holds protected machines', () => {
  // S-704: A namespace with protected machines is not deleted, and says which hold it, up to ten by name; nor is the
  //   KubeVirt object or the namespace that it is in, nor the definition of a kind that one refers to. Those of
  //   KubeVirt's own kinds are never deleted.
  it('a namespace stays, and everything in it; the first ten machines are named', async () => {
    await makeNamespace('full');
    await plane.admin(`POST ${secrets('full')}`, secret);
    const names = Array.from({ length: 12 }, (_, i) => `vm-${String(i).padStart(2, '0')}`);
    for (const name of names) await plane.admin(`POST ${machines('full')}`, machine(name));
    await plane.admin(`POST ${machines('full')}`, machine('free', {}, {}));
    for (const as of SYSTEM)
      for (const query of ['', '?dryRun=All', '?propagationPolicy=Foreground']) {
        const { status, json } = await remove(`/api/v1/namespaces/full${query}`, undefined, as);
        assert.equal(status, 403);
        const listed = names
          .slice(0, 10)
          .map((name) => `full/${name}`)
          .join(', ');
        assert.equal(
          json.message,
          `namespaces "full" is forbidden: 12 protected VirtualMachines are in it: ${listed}, and 2 more; disable/remove label '${LABEL}' from those VirtualMachines before deleting it`,
        );
        assert.equal(json.details.causes.length, 10);
      }
    const { status } = await plane.admin('GET /api/v1/namespaces/full');
    assert.equal(status.phase, 'Active');
    assert.ok(await isThere(`${secrets('full')}/part`));
    for (const name of [...names, 'free']) await unprotect('full', name);
    assert.equal((await remove('/api/v1/namespaces/full')).status, 200);
    await eventually(
      () => plane.ask('GET /api/v1/namespaces/full', { as: ADMIN }),
      (reported) => reported.status === 404,
    );
  });

  // S-704
  it('the definition of virtual machines, those of what they refer to, the KubeVirt object and its namespace stay', async () => {
    await makeNamespace('upward');
    await plane.admin(`POST ${machines('upward')}`, machine('vm', volume({ dataVolume: { name: 'part' } })));
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const stay: readonly [path: string, text: RegExp][] = [
      // Whether anything is protected or not.
      [`${crds}/virtualmachines.kubevirt.io`, /the kind is built into this server and cannot be taken away/],
      [
        `${crds}/datavolumes.cdi.kubevirt.io`,
        /protected VirtualMachine upward\/vm \(spec.template.spec.volumes\[0\].dataVolume.name\) refers to it/,
      ],
      ['/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt', /protected VirtualMachine upward\/vm exists/],
      [
        '/api/v1/namespaces/kubevirt',
        /protected VirtualMachine upward\/vm \(run by KubeVirt kubevirt, which is in it\) exists; disable\/remove label/,
      ],
    ];
    for (const as of SYSTEM)
      for (const [path, text] of stay)
        for (const query of ['', '?dryRun=All']) {
          const { status, json } = await remove(`${path}${query}`, undefined, as);
          assert.equal(status, 403, path);
          assert.match(json.message, text);
        }
    for (const [path] of stay) assert.ok(await isThere(path), path);
    assert.equal((await remove(crds)).status, 403);
    assert.ok(await isThere(`${crds}/datavolumes.cdi.kubevirt.io`));
    await unprotect('upward');
    assert.equal((await remove(`${stay[1]![0]}?dryRun=All`)).status, 200);
    await plane.admin(`DELETE ${machines('upward')}/vm`);
    // Other machines are still there, as KubeVirt's own rule says.
    const { json } = await remove(`${stay[2]![0]}?dryRun=All`);
    assert.ok(!json.message?.includes('protected VirtualMachine'), json.message);
  });

  // S-705
  it('nothing is protected in a namespace that goes', async () => {
    await plane.admin('POST /api/v1/namespaces', { metadata: { name: 'ending', finalizers: ['example.com/hold'] } });
    const vm = machine('vm', {}, {});
    await plane.admin(`POST ${machines('ending')}`, {
      ...vm,
      metadata: { ...vm.metadata, finalizers: ['example.com/hold'] },
    });
    await plane.admin(`POST ${machines('ending')}`, machine('other', {}, {}));
    await plane.admin('PATCH /api/v1/namespaces/ending/status', { status: { phase: 'Terminating' } });
    const refused = await plane.ask(`PATCH ${machines('ending')}/other`, {
      as: ADMIN,
      body: { metadata: { labels: { [LABEL]: 'true' } } },
    });
    assert.equal(refused.status, 403, JSON.stringify(refused.json));
    assert.equal(refused.json.details.causes[0].reason, 'NamespaceTerminating');
    await plane.admin(`PATCH ${machines('ending')}/vm`, { metadata: { finalizers: [] } });
    for (const name of ['vm', 'other']) await remove(`${machines('ending')}/${name}`);
    await plane.admin('DELETE /api/v1/namespaces/ending');
    await plane.admin('PATCH /api/v1/namespaces/ending', { metadata: { finalizers: [] } });
  });
});

describe('a collection with something protected in it', () => {
  // S-706: A collection of KubeVirt's kinds, or of those that machines refer to, is deleted whole or not at all:
  //   refused before the first object goes, with each refused object as a cause, in a dry run too.
  it('of virtual machines: none goes, and those that are kept are listed', async () => {
    await makeNamespace('all-vms');
    const labels = { [LABEL]: 'true' };
    for (const name of ['a', 'c', 'e']) await plane.admin(`POST ${machines('all-vms')}`, machine(name, {}, {}));
    for (const name of ['b', 'd']) await plane.admin(`POST ${machines('all-vms')}`, machine(name, {}, labels));
    for (const query of ['?dryRun=All', '']) {
      const { status, json } = await remove(`${machines('all-vms')}${query}`);
      assert.equal(status, 422);
      assert.equal(json.reason, 'Invalid');
      const why = (name: string): string =>
        `VirtualMachine ${name} cannot be deleted, disable/remove label '${LABEL}' from VirtualMachine before deleting it`;
      assert.ok(json.message.includes(why('b')));
      assert.match(json.message, /; none of the 5 objects of the collection was deleted, as 2 may not be: b, d$/);
      assert.equal(json.details.causes.length, 2);
      for (const [at, name] of ['b', 'd'].entries()) assert.ok(json.details.causes[at].message.includes(why(name)));
    }
    const { items } = await plane.admin(`GET ${machines('all-vms')}`);
    assert.deepEqual(items.filter(({ metadata }: Any) => metadata.deletionTimestamp === undefined).length, 5);
    const rest = await remove(`${machines('all-vms')}?labelSelector=!${encodeURIComponent(LABEL)}`);
    assert.equal(rest.status, 200);
    const { items: left } = await plane.admin(`GET ${machines('all-vms')}`);
    assert.deepEqual(
      left.flatMap(({ metadata }: Any) => (metadata.deletionTimestamp ? [] : [metadata.name])),
      ['b', 'd'],
    );
  });

  // S-706
  it('of Secrets: none goes, before the first', async () => {
    await makeNamespace('all-secrets');
    for (const name of ['a', 'b', 'c', 'd', 'e'])
      await plane.admin(`POST ${secrets('all-secrets')}`, { metadata: { name } });
    await plane.admin(`POST ${machines('all-secrets')}`, machine('vm', volume({ secret: { secretName: 'e' } })));
    const { status, json } = await remove(secrets('all-secrets'));
    assert.equal(status, 403);
    assert.deepEqual(
      json.details.causes.map(({ reason }: Any) => reason),
      ['ProtectedVirtualMachine'],
    );
    assert.equal((await plane.admin(`GET ${secrets('all-secrets')}`)).items.length, 5);
    await unprotect('all-secrets');
    assert.equal((await remove(secrets('all-secrets'))).status, 200);
    assert.equal((await plane.admin(`GET ${secrets('all-secrets')}`)).items.length, 0);
  });
});
