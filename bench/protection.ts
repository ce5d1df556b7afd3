/**
 * What protection costs, with 10,000 protected machines that refer to 100,000 objects: the decision about one deletion,
 * and writes of kinds that it does not look at, beside a store without it, in the same rounds. In this process, on the
 * memory backend: what is measured is the index and the decision, not the disk, in processor time.
 */

import type { UnstructuredObject } from '../packages/apimachinery/src/meta/object.ts';
import type { ResourceInfo } from '../packages/apimachinery/src/types/resource.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../packages/apiserver/src/admission/plugin.ts';
import { createObjectStore } from '../packages/apiserver/src/cache/create-object-store.ts';
import type { ObjectStore } from '../packages/apiserver/src/cache/object-store.ts';
import { builtinResource } from '../packages/apiserver/src/kinds/builtin/builtin-resources.ts';
import { createMemoryBackend } from '../packages/apiserver/src/storage/memory-backend.ts';
import { createDeletionProtection } from '../packages/coracle/src/compose/deletion-protection.ts';
import { systemClock } from '../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../packages/runtime/src/log/log.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';

const NAMESPACES = 100;
const MACHINES = 10_000;
/** Objects that each refers to. */
const PARTS = 10;
const ROUNDS = 5;
const DECISIONS = 20_000;
const WRITES = 20_000;

const LABEL = 'kubevirt.io/vm-delete-protection';
const infoOf = (group: string, version: string, resource: string): ResourceInfo =>
  builtinResource({ group, version, resource })!;
const SECRETS = infoOf('', 'v1', 'secrets');
const CLAIMS = infoOf('', 'v1', 'persistentvolumeclaims');
const NAMESPACE = infoOf('', 'v1', 'namespaces');

const machine = (index: number): UnstructuredObject => {
  const name = `vm-${index}`;
  return {
    kind: 'VirtualMachine',
    apiVersion: 'kubevirt.io/v1',
    metadata: { name, namespace: `ns-${index % NAMESPACES}`, uid: name, labels: { [LABEL]: 'true' } },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: { devices: {} },
          volumes: Array.from({ length: PARTS }, (_, at) =>
            at < PARTS / 2
              ? { name: `d${at}`, persistentVolumeClaim: { claimName: `${name}-${at}` } }
              : { name: `d${at}`, secret: { secretName: `${name}-${at}` } },
          ),
        },
      },
    },
  };
};
const configMap = (index: number): UnstructuredObject => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name: `c-${index}`, namespace: 'ns-0', uid: `c-${index}` },
  data: { a: 'x'.repeat(1000) },
});

const openStore = (): Promise<ObjectStore> =>
  createObjectStore({
    backend: createMemoryBackend(),
    clock: systemClock,
    log: silentLogger,
    byteLimits: { namespace: Number.MAX_SAFE_INTEGER, total: Number.MAX_SAFE_INTEGER },
    signal: AbortSignal.timeout(120_000),
  });

async function put(store: ObjectStore, prefix: string, objects: readonly UnstructuredObject[]): Promise<void> {
  for (let from = 0; from < objects.length; from += 1000) {
    await Promise.all(
      objects.slice(from, from + 1000).map((object) => {
        const { namespace = '', name = '' } = object.metadata;
        return store.write({ prefix, namespace, name }, () => ({ type: 'put', object }));
      }),
    );
  }
}

/** Processor time of this process, all threads: other work on the machine does not count. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Milliseconds for `WRITES` writes of a kind that is not guarded. */
async function otherWrites(store: ObjectStore, round: number): Promise<number> {
  const objects = Array.from({ length: WRITES }, (_, index) => configMap(round * WRITES + index));
  const began = processorMs();
  await put(store, '/configmaps', objects);
  return processorMs() - began;
}

export async function benchProtection({ say }: BenchContext): Promise<Outcome> {
  const runs = new Runs();
  const bare = await openStore();
  const store = await openStore();
  const heapBefore = process.memoryUsage().heapUsed;
  const { plugin, stop } = createDeletionProtection({
    store,
    evidence: { refused: () => {} },
    isComponent: () => false,
  });
  say(`writing ${MACHINES} protected machines that refer to ${MACHINES * PARTS} objects`);
  const began = performance.now();
  await put(
    store,
    'kubevirt.io/virtualmachines',
    Array.from({ length: MACHINES }, (_, index) => machine(index)),
  );
  const filled = performance.now() - began;
  for (let round = 0; round < ROUNDS; round++) {
    const decisions: readonly [figure: string, info: ResourceInfo, of: (index: number) => [string, string]][] = [
      ['refused claim', CLAIMS, (index) => [`ns-${index % NAMESPACES}`, `vm-${index}-1`]],
      ['refused secret', SECRETS, (index) => [`ns-${index % NAMESPACES}`, `vm-${index}-7`]],
      ['allowed secret', SECRETS, (index) => [`ns-${index % NAMESPACES}`, `other-${index}`]],
      ['refused namespace', NAMESPACE, (index) => ['', `ns-${index % NAMESPACES}`]],
      ['allowed namespace', NAMESPACE, (index) => ['', `other-${index}`]],
    ];
    for (const [figure, info, of] of decisions) {
      const asked = Array.from({ length: DECISIONS }, (_, index) => attributes(info, ...of((index * 7919) % MACHINES)));
      const since = processorMs();
      let refused = 0;
      for (const each of asked) refused += isRefused(plugin, each) ? 1 : 0;
      const perDecision = ((processorMs() - since) / DECISIONS) * 1000;
      if (refused !== (figure.startsWith('refused') ? DECISIONS : 0)) throw new Error(`${figure}: ${refused} refused`);
      runs.add(`protection.${figure.replace(' ', '.')}`, 'us', { value: perDecision });
    }
    const pair = [await otherWrites(store, round), await otherWrites(bare, round)] as const;
    runs.add('protection.other.writes', 'us', {
      value: (pair[0] / WRITES) * 1000,
      plain: (pair[1] / WRITES) * 1000,
    });
    runs.add('protection.other.ratio', 'x', { value: pair[0] / pair[1] });
  }
  stop();
  const figures = runs.figures();
  const heap = Math.round((process.memoryUsage().heapUsed - heapBefore) / 1024 / 1024);
  await Promise.all([store.close(), bare.close()]);
  return {
    state: 'measured',
    figures,
    notes: { machines: MACHINES, dependents: MACHINES * PARTS, fillMs: Math.round(filled), heapMiB: heap },
  };
}

const attributes = (info: ResourceInfo, namespace: string, name: string): AdmissionAttributes =>
  ({
    operation: 'DELETE',
    info,
    subresource: '',
    namespace,
    name,
    user: { username: 'bench', groups: [] },
    object: undefined,
    oldObject: {
      kind: info.kind,
      apiVersion: info.version,
      metadata: { name, ...(namespace !== '' && { namespace }), uid: name },
    },
    checks: [],
  }) as unknown as AdmissionAttributes;

/** The whole of the decision, its refusal in words among it. */
function isRefused(plugin: AdmissionPlugin, asked: AdmissionAttributes): boolean {
  if (!plugin.matches('DELETE', asked.info, '')) return false;
  try {
    if (plugin.validate!(asked)) throw new Error('a decision that waits');
    return false;
  } catch (error) {
    if ((error as { code?: number }).code === 403) return true;
    throw error;
  }
}
