/** A control plane with the controllers of volumes and snapshots, over a pool in memory. */

import { NODES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import type { ComponentFacts } from '../../packages/coracle/src/compose/components.ts';
import type { ControlPlaneOptions } from '../../packages/coracle/src/compose/control-plane.ts';
import { startPlane, type TestPlane } from './control-plane.ts';
import { createFakePool, type FakePool, poolNode } from './fake-pool.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
export type Row = Record<string, any>;

export const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
export const VOLUMES = '/api/v1/persistentvolumes';

export interface StoragePlane extends TestPlane {
  readonly pool: FakePool;
  /** Makes a claim for 1 GiB; `spec` goes before. */
  claim(name: string, spec?: object): Promise<Row>;
  /** Asks for the object until `holds`; after 50 s it throws with what it saw last. */
  settled(path: string, holds: (object: Row) => boolean): Promise<Row>;
  /** Waits for an Event about the object of that name. */
  reported(name: string, reason: string, message?: RegExp): Promise<void>;
}

/** Shorter than the limit of a test, which says nothing of what it waited for. */
const SETTLED_MS = 50_000;

const CONTROLLERS = [
  'persistentvolume-binder-controller',
  'local-volume-provisioner',
  'local-volume-deleter',
  'local-volume-resizer',
  'volume-snapshot-controller',
  'local-volume-snapshotter',
  'persistentvolumeclaim-protection-controller',
  'persistentvolume-protection-controller',
];

/** Starts one with the node `n1`, Ready, and more controllers of these names. */
export async function startStoragePlane(
  more: readonly string[] = [],
  prepare: (plane: TestPlane, pool: FakePool) => Promise<void> = async () => {},
  /** The way to the pool; that of the one in memory when not given. */
  connect?: FakePool['connect'],
  facts: (plane: TestPlane) => Partial<ComponentFacts> = () => ({}),
  options: Partial<ControlPlaneOptions> = {},
): Promise<StoragePlane> {
  const plane = await startPlane(options);
  const pool = createFakePool();
  await prepare(plane, pool);
  const { status, ...node } = poolNode('n1');
  await plane.admin('POST /api/v1/nodes', node);
  await plane.admin('PATCH /api/v1/nodes/n1/status', { status });
  await plane.admin('PATCH /api/v1/nodes/n1', { spec: { taints: null } });
  const connectNode = async (name: string, client: Client) => {
    // As the real one does, which looks up the address with the rights of whoever asks.
    await client.get(NODES, { namespace: '', name });
    return (connect ?? pool.connect)(name);
  };
  await plane.run([...CONTROLLERS, ...more], { rootCa: '', connectNode, ...facts(plane) });
  const settled: StoragePlane['settled'] = async (path, holds) => {
    const end = Date.now() + SETTLED_MS;
    for (;;) {
      const { status: code, json } = await plane.ask(`GET ${path}`, { as: ['admin', 'system:masters'] });
      if (code === 200 ? holds(json) : code === 404 && holds({})) return json;
      if (Date.now() > end) throw new Error(`${path} is still: ${code} ${JSON.stringify(json)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return {
    ...plane,
    pool,
    settled,
    claim: (name, spec = {}) =>
      plane.admin(`POST ${CLAIMS}`, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name },
        spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } }, ...spec },
      }),
    async reported(name, reason, message = /./) {
      await settled('/api/v1/namespaces/default/events', ({ items }) =>
        items.some(
          (one: Row) => one['involvedObject'].name === name && one['reason'] === reason && message.test(one['message']),
        ),
      );
    },
  };
}
