/**
 * Random walks through everything that makes, protects, refers to and deletes, several at once, on a real server with
 * its controllers, the collector and the namespace controller among them. A model that is fed by the decisions of the
 * store, one after the other, says at each of them whether it was allowed.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Change, StoredObject } from '../../packages/apiserver/src/cache/object-store.ts';
import { type Answer, startPlane, type TestPlane } from './control-plane.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const ADMIN: readonly [string, string] = ['admin', 'system:masters'];
const COMPONENTS = [
  'protection',
  'vm',
  'snapshot',
  'garbage-collector-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'persistentvolumeclaim-protection-controller',
];
/** As long as anything may take that has to end. Generous: other tests run beside. */
const PATIENCE_MS = 60_000;

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

const VMS = 'kubevirt.io/virtualmachines';
/** Kinds of parts, their paths, bodies, and how a machine refers to one. */
const PARTS = [
  {
    prefix: '/secrets',
    path: 'api/v1',
    resource: 'secrets',
    body: {},
    volume: (name: string) => ({ secret: { secretName: name } }),
  },
  {
    prefix: '/configmaps',
    path: 'api/v1',
    resource: 'configmaps',
    body: {},
    volume: (name: string) => ({ configMap: { name } }),
  },
  {
    prefix: '/persistentvolumeclaims',
    path: 'api/v1',
    resource: 'persistentvolumeclaims',
    body: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } } },
    volume: (name: string) => ({ persistentVolumeClaim: { claimName: name } }),
  },
  {
    prefix: 'apps/controllerrevisions',
    path: 'apis/apps/v1',
    resource: 'controllerrevisions',
    body: {
      revision: 0,
      data: {
        apiVersion: 'instancetype.kubevirt.io/v1beta1',
        kind: 'VirtualMachinePreference',
        metadata: { name: 'p' },
        spec: {},
      },
    },
  },
] as const;
const REVISION = 3;
const NAMES = ['a', 'b', 'c'];
const POLICIES = ['Background', 'Foreground', 'Orphan'] as const;

type Op =
  | {
      readonly do: 'make-part';
      readonly ns: number;
      readonly kind: number;
      readonly name: string;
      readonly owner?: string;
    }
  | {
      readonly do: 'make-machine';
      readonly ns: number;
      readonly name: string;
      readonly refs: readonly Ref[];
      readonly on: boolean;
    }
  | { readonly do: 'label'; readonly ns: number; readonly name: string; readonly value: string | null }
  | { readonly do: 'refer'; readonly ns: number; readonly name: string; readonly refs: readonly Ref[] }
  | { readonly do: 'delete-machine'; readonly ns: number; readonly name: string; readonly policy: number }
  | {
      readonly do: 'delete-part';
      readonly ns: number;
      readonly kind: number;
      readonly name: string;
      readonly policy: number;
    }
  | { readonly do: 'delete-parts' | 'dry-run'; readonly ns: number; readonly kind: number }
  | { readonly do: 'delete-machines'; readonly ns: number }
  | { readonly do: 'delete-namespace' | 'make-namespace'; readonly ns: number }
  | { readonly do: 'snapshot' | 'restore'; readonly ns: number; readonly name: string };
type Ref = readonly [kind: number, name: string];

const ns = fc.constantFrom(0, 0, 0, 1);
const name = fc.constantFrom(...NAMES);
const kind = fc.nat(PARTS.length - 1);
const policy = fc.nat(POLICIES.length - 1);
const refs: fc.Arbitrary<readonly Ref[]> = fc.uniqueArray(fc.tuple(kind, name), {
  maxLength: 4,
  selector: ([of, part]) => `${of} ${part}`,
});
const value = fc.constantFrom('true', 'True', 'true', 'False', 'TRUE', null);
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record(
      { do: fc.constant('make-part' as const), ns, kind, name, owner: name },
      { requiredKeys: ['do', 'ns', 'kind', 'name'] },
    ),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('make-machine' as const), ns, name, refs, on: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('label' as const), ns, name, value }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('refer' as const), ns, name, refs }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete-machine' as const), ns, name, policy }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('delete-part' as const), ns, kind, name, policy }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('delete-parts' as const, 'dry-run' as const), ns, kind }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete-machines' as const), ns }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('delete-namespace' as const, 'make-namespace' as const), ns }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('snapshot' as const, 'restore' as const), ns, name }) },
);

const isOn = (vm: StoredObject): boolean => ['true', 'True'].includes(vm.metadata.labels?.[LABEL] ?? '');
const isGuarding = (vm: StoredObject): boolean => isOn(vm) && vm.metadata.deletionTimestamp === undefined;
/** What a machine refers to, read from it by this model alone: the forms that the walk makes, and what controllers add. */
function refersTo(vm: StoredObject, prefix: string, part: string): boolean {
  const { spec = {}, status = {} } = vm.object as Any;
  const volumes = spec.template?.spec?.volumes ?? [];
  if (prefix === PARTS[REVISION].prefix)
    return [
      spec.preference?.revisionName,
      spec.instancetype?.revisionName,
      status.preferenceRef?.controllerRevisionRef?.name,
      status.instancetypeRef?.controllerRevisionRef?.name,
    ].includes(part);
  return volumes.some((volume: Any) =>
    prefix === '/secrets'
      ? volume.secret?.secretName === part
      : prefix === '/configmaps'
        ? volume.configMap?.name === part
        : volume.persistentVolumeClaim?.claimName === part,
  );
}

/** Follows every decision of the store, and collects those that protection forbids. */
function follow(plane: TestPlane) {
  const { store } = plane.plane;
  const vms = new Map<string, StoredObject>();
  const wrong: string[] = [];
  const inNamespace = (namespace: string): StoredObject[] =>
    [...vms.values()].filter((vm) => vm.namespace === namespace);
  const begins = ({ type, current, previous }: Change): boolean =>
    previous !== undefined &&
    previous.metadata.deletionTimestamp === undefined &&
    (type === 'DELETED' || current.metadata.deletionTimestamp !== undefined);
  const guards = (prefix: string, { namespace, name: part }: StoredObject): StoredObject[] =>
    prefix === VMS
      ? []
      : prefix === '/namespaces'
        ? inNamespace(part).filter(isGuarding)
        : inNamespace(namespace).filter((vm) => isGuarding(vm) && refersTo(vm, prefix, part));
  const stops = [VMS, '/namespaces', ...PARTS.map(({ prefix }) => prefix)].map((prefix) => {
    for (const item of prefix === VMS ? store.list(prefix).items : []) vms.set(`${item.namespace}/${item.name}`, item);
    return store.observe(prefix, {
      decided(change) {
        const { type, current, previous } = change;
        if (begins(change)) {
          const by = guards(prefix, current).map((vm) => vm.name);
          if (by.length > 0) wrong.push(`${prefix} ${current.namespace}/${current.name} went, guarded by ${by.join()}`);
          if (prefix === VMS && isOn(previous!))
            wrong.push(`machine ${current.namespace}/${current.name} went, protected`);
        }
        if (prefix !== VMS) return;
        const key = `${current.namespace}/${current.name}`;
        if (type === 'DELETED') vms.delete(key);
        else vms.set(key, current);
      },
      settled() {},
    });
  });
  return {
    wrong,
    vms: inNamespace,
    /** Whether the model refuses a deletion as things stand. */
    refuses: (prefix: string, namespace: string, part: string): boolean => {
      const key = { prefix, namespace: prefix === '/namespaces' ? '' : namespace, name: part };
      const found = store.peek(key);
      if (!found) return false;
      if (prefix === VMS) return isOn(found);
      return found.metadata.deletionTimestamp === undefined && guards(prefix, found).length > 0;
    },
    stop: () => {
      for (const each of stops) each.stop();
    },
  };
}
type Model = ReturnType<typeof follow>;

const machinesOf = (namespace: string): string => `apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;
const partsOf = (namespace: string, of: number): string =>
  `${PARTS[of]!.path}/namespaces/${namespace}/${PARTS[of]!.resource}`;
const snapshotsOf = (namespace: string, resource: string): string =>
  `apis/snapshot.kubevirt.io/v1beta1/namespaces/${namespace}/${resource}`;

function specOf(of: readonly Ref[]): Any {
  const revision = of.find(([at]) => at === REVISION)?.[1];
  const volumes = of.flatMap(([at, part], index) => {
    const each = PARTS[at]!;
    return 'volume' in each ? [{ name: `v${index}`, ...each.volume(part) }] : [];
  });
  return {
    ...(revision !== undefined && {
      preference: { kind: 'VirtualMachinePreference', name: 'p', revisionName: revision },
    }),
    template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, volumes } },
  };
}

/** One operation; what it answers is checked where nothing runs beside it. */
async function perform(
  plane: TestPlane,
  each: Op,
  { spaces, model, alone }: { spaces: readonly string[]; model: Model; alone: boolean },
): Promise<void> {
  const namespace = spaces[each.ns]!;
  const send = (method: string, path: string, body?: object): Promise<Answer> =>
    plane.ask(`${method} /${path}`, { as: ADMIN, ...(body && { body }) });
  /** A deletion, refused exactly when the model says so, before and after. */
  const remove = async (path: string, body: object | undefined, refused: () => boolean): Promise<void> => {
    const before = refused();
    const { status, json } = await send('DELETE', path, body);
    if (!alone || status === 404 || status === 409 || before !== refused()) return;
    const isRefused = status === 403 || status === 422;
    assert.equal(isRefused, before, `DELETE ${path}: ${status} ${JSON.stringify(json)}`);
  };
  switch (each.do) {
    case 'make-namespace':
      await send('POST', 'api/v1/namespaces', { metadata: { name: namespace } });
      return;
    case 'delete-namespace':
      return remove(`api/v1/namespaces/${namespace}`, undefined, () => model.refuses('/namespaces', '', namespace));
    case 'make-part': {
      const owner = model.vms(namespace).find((vm) => vm.name === each.owner)?.metadata;
      const ownerReferences = owner && [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          name: owner.name,
          uid: owner.uid,
          blockOwnerDeletion: true,
        },
      ];
      await send('POST', partsOf(namespace, each.kind), {
        metadata: { name: each.name, ...(ownerReferences && { ownerReferences }) },
        ...PARTS[each.kind]!.body,
      });
      return;
    }
    case 'make-machine':
      await send('POST', machinesOf(namespace), {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name: each.name, labels: each.on ? { [LABEL]: 'true' } : {} },
        spec: { runStrategy: 'Halted', ...specOf(each.refs) },
      });
      return;
    case 'label':
      await send('PATCH', `${machinesOf(namespace)}/${each.name}`, { metadata: { labels: { [LABEL]: each.value } } });
      return;
    case 'refer': {
      const { preference = null, template } = specOf(each.refs);
      await send('PATCH', `${machinesOf(namespace)}/${each.name}`, { spec: { preference, template } });
      return;
    }
    case 'delete-machine':
      return remove(`${machinesOf(namespace)}/${each.name}`, { propagationPolicy: POLICIES[each.policy] }, () =>
        model.refuses(VMS, namespace, each.name),
      );
    case 'delete-part':
      return remove(`${partsOf(namespace, each.kind)}/${each.name}`, { propagationPolicy: POLICIES[each.policy] }, () =>
        model.refuses(PARTS[each.kind]!.prefix, namespace, each.name),
      );
    case 'dry-run':
      await send('DELETE', `${partsOf(namespace, each.kind)}?dryRun=All`);
      return;
    case 'delete-parts': {
      const { prefix } = PARTS[each.kind]!;
      const names = (): string[] => plane.plane.store.list(prefix, { namespace }).items.map((item) => item.name);
      const before = names();
      const refused = before.some((part) => model.refuses(prefix, namespace, part));
      const { status } = await send('DELETE', partsOf(namespace, each.kind));
      if (!alone || !refused || status < 400) return;
      // Whole or not at all. What others made meanwhile may be there as well.
      const after = new Set(names());
      assert.deepEqual(
        before.filter((part) => !after.has(part) && model.refuses(prefix, namespace, part)),
        [],
      );
      return;
    }
    case 'delete-machines':
      await send('DELETE', machinesOf(namespace));
      return;
    case 'snapshot':
      await send('POST', snapshotsOf(namespace, 'virtualmachinesnapshots'), {
        apiVersion: 'snapshot.kubevirt.io/v1beta1',
        kind: 'VirtualMachineSnapshot',
        metadata: { name: each.name },
        // A machine whose claims nobody binds is let go by then.
        spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: each.name }, failureDeadline: '1s' },
      });
      return;
    case 'restore':
      await send('POST', snapshotsOf(namespace, 'virtualmachinerestores'), {
        apiVersion: 'snapshot.kubevirt.io/v1beta1',
        kind: 'VirtualMachineRestore',
        metadata: { generateName: 'restore-' },
        spec: {
          target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: each.name },
          virtualMachineSnapshotName: each.name,
        },
      });
      return;
    default:
      return each satisfies never;
  }
}

async function within<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > until) throw new Error(`in vain for ${PATIENCE_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** What is still in these namespaces, and on its way out. */
function terminating(plane: TestPlane, spaces: readonly string[]): string[] {
  const { store } = plane.plane;
  const found: string[] = [];
  for (const { name: space, metadata } of store.list('/namespaces').items)
    if (spaces.includes(space) && metadata.deletionTimestamp !== undefined) found.push(`namespace ${space}`);
  const prefixes = [
    VMS,
    ...PARTS.map(({ prefix }) => prefix),
    'snapshot.kubevirt.io/virtualmachinesnapshots',
    'snapshot.kubevirt.io/virtualmachinesnapshotcontents',
    'snapshot.kubevirt.io/virtualmachinerestores',
  ];
  for (const prefix of prefixes)
    for (const { namespace, name: one, metadata } of store.list(prefix).items)
      if (spaces.includes(namespace) && metadata.deletionTimestamp !== undefined)
        found.push(`${prefix} ${namespace}/${one}`);
  return found;
}

async function walk(plane: TestPlane, steps: readonly (readonly Op[])[], run: number): Promise<void> {
  const spaces = [`walk-${run}-0`, `walk-${run}-1`];
  const model = follow(plane);
  const trace: string[] = [];
  try {
    for (const space of spaces) await plane.admin('POST /api/v1/namespaces', { metadata: { name: space } });
    for (const together of steps) {
      trace.push(JSON.stringify(together));
      await Promise.all(together.map((each) => perform(plane, each, { spaces, model, alone: together.length === 1 })));
      assert.deepEqual(model.wrong, []);
    }
    // Nothing hangs while machines are protected.
    await within('nothing is left terminating', async () =>
      terminating(plane, spaces).length === 0 ? true : undefined,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${terminating(plane, spaces).join(', ')}`);
    });
    for (const space of spaces)
      for (const vm of model.vms(space)) {
        const path = `/${machinesOf(space)}/${vm.name}`;
        await plane.admin(`PATCH ${path}`, { metadata: { annotations: { note: 'x' } } });
        await plane.admin(`PATCH ${path}`, { metadata: { labels: { [LABEL]: null } } });
      }
    for (const [index, vm] of spaces.flatMap((space) => model.vms(space)).entries()) {
      const body = { propagationPolicy: POLICIES[index % 2] };
      const answer = await plane.ask(`DELETE /${machinesOf(vm.namespace)}/${vm.name}`, { as: ADMIN, body });
      assert.ok(answer.status === 404 || answer.status < 300, JSON.stringify(answer.json));
    }
    const owned = (): string[] =>
      PARTS.flatMap(({ prefix }) =>
        plane.plane.store
          .list(prefix)
          .items.filter(
            ({ namespace, metadata }) =>
              spaces.includes(namespace) &&
              (metadata.ownerReferences ?? []).some(({ kind: of }) => of === 'VirtualMachine'),
          )
          .map(({ namespace, name: one }) => `${prefix} ${namespace}/${one}`),
      );
    await within('machines and what they own are gone', async () =>
      spaces.every((space) => model.vms(space).length === 0) && owned().length === 0 ? true : undefined,
    ).catch((error: Error) => {
      const left = spaces.flatMap((space) => model.vms(space).map((vm) => `machine ${space}/${vm.name}`));
      throw new Error(`${error.message}: ${[...left, ...owned()].join(', ')}`);
    });
    for (const space of spaces) await plane.ask(`DELETE /api/v1/namespaces/${space}`, { as: ADMIN });
    await within('the namespaces are gone', async () => {
      const left = plane.plane.store.list('/namespaces').items.filter((item) => spaces.includes(item.name));
      return left.length === 0 ? true : undefined;
    });
    assert.deepEqual(model.wrong, []);
  } catch (error) {
    throw new Error(`${String(error)}\nafter:\n${trace.join('\n')}`, { cause: error });
  } finally {
    model.stop();
  }
}

/** Walks on one server; throws with the operations that led to what is wrong. */
export async function walkProtection({
  runs,
  steps,
}: {
  readonly runs: number;
  readonly steps: number;
}): Promise<void> {
  const plane = await startPlane();
  try {
    await plane.run(COMPONENTS, { rootCa: '' });
    const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
    await within('the policy is there', async () => {
      const { json } = await plane.ask(`GET ${bindings}`, { as: ADMIN });
      return json.items.length > 0 ? true : undefined;
    });
    let run = 0;
    const together = fc.oneof(
      { weight: 2, arbitrary: fc.array(op, { minLength: 1, maxLength: 1 }) },
      { weight: 1, arbitrary: fc.array(op, { minLength: 2, maxLength: 5 }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(together, { minLength: steps >> 1, maxLength: steps }), (all) =>
        walk(plane, all, run++),
      ),
      // Each run leaves another state of a real server: what failed is reported as it went, not made smaller.
      { numRuns: runs, endOnFailure: true },
    );
  } finally {
    await plane.stop();
  }
}
