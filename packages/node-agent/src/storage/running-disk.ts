/**
 * A volume in a QEMU that runs: which of its layers QEMU has open under which name, and how their order changes while the
 * guest writes. Names of nodes: `disk-N` for the layer that QEMU was started on, `disk-N-TAG` for every other one, and
 * `-f` after either for the node of its file.
 */
import { relative } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { QmpConnection } from '../qmp/qmp-connection.ts';
import { QmpError } from '../qmp/qmp-connection.ts';
import { PoolError } from './pool-error.ts';

/** How a pool reaches a volume that a guest has open. */
export interface RunningDisk {
  /** UID of the VMI, and the node that it runs on. */
  readonly vmi: string;
  readonly place: string;
  /** Id of the device in QEMU. */
  readonly device: string;
  /** Node that QEMU was started with, `disk-N`. */
  readonly node: string;
  /** How the files of a disk are opened, as for the one it was started with. */
  readonly file: { readonly direct: boolean; readonly aio: 'native' | 'threads' };
  /** The guest only reads, or shares the disk with others that write. */
  readonly access: 'write' | 'read' | 'shared';
  readonly qmp: () => QmpConnection;
  /** Why its layers may not change now (it moves, it starts); undefined when they may. */
  readonly obstacle: () => string | undefined;
  /** Called with the absolute paths of its layers after each change, from the top down. */
  readonly onLayers?: (files: readonly string[]) => void | Promise<void>;
}

/** The blocks of a transaction wait for writes that are under way: a slow disk takes a while. */
const TRANSACTION_MS = 20_000;

/** Twelve digits that tell the layers of a chain from one another. */
export const layerTag = (id: string): string => /layer-([0-9a-f]{12})\./.exec(id)?.[1] ?? id.slice(24, 36);
/** Node of a layer that QEMU was not started on. */
export const layerNode = (disk: Pick<RunningDisk, 'node'>, id: string): string => `${disk.node}-${layerTag(id)}`;

/** What QEMU has open of a volume. */
export interface OpenLayers {
  /** Node that the guest writes to. */
  readonly root: string;
  /** Id of the layer -> node. */
  readonly nodes: ReadonlyMap<string, string>;
}

/** Asks QEMU. Throws PoolError `Conflict` when it does not answer, or has no such disk. */
export async function openLayers(disk: RunningDisk, directory: string): Promise<OpenLayers> {
  const [blocks, named] = await asked(disk, async (qmp) => [
    await qmp.execute('query-block'),
    await qmp.execute('query-named-block-nodes', { flat: true }),
  ]);
  const own = blocks.find(({ qdev = '' }) => qdev === disk.device || qdev.includes(`/${disk.device}/`));
  const root = own?.inserted?.['node-name'];
  if (root === undefined) throw new PoolError('Conflict', `the guest has no disk ${disk.device}`);
  const nodes = new Map<string, string>();
  for (const { 'node-name': name = '', file, drv } of named) {
    if (name !== disk.node && !name.startsWith(`${disk.node}-`)) continue;
    // The file of a format node may be spelt as JSON; that of its file node never is. Images of guests that an older
    // version started have a file node without a name, and are raw.
    const node = name.endsWith('-f') ? name.slice(0, -2) : drv === 'raw' ? name : undefined;
    if (node !== undefined && !file.startsWith('json:')) nodes.set(relative(directory, file), node);
  }
  return { root, nodes };
}

/**
 * Has QEMU open new layers, empty as yet, and write to them from one moment on: all of the disks are one guest's. Resolves
 * to the ms for which its writes were held back at most.
 */
export async function switchLayers(
  overlays: readonly {
    readonly disk: RunningDisk;
    readonly id: string;
    readonly file: string;
    readonly root: string;
  }[],
  clock: Clock,
): Promise<number> {
  const first = overlays[0];
  if (!first) return 0;
  return asked(first.disk, async (qmp) => {
    for (const { disk, id, file } of overlays) {
      const cache = { direct: disk.file.direct, 'no-flush': false };
      await qmp.execute('blockdev-add', {
        'node-name': layerNode(disk, id),
        driver: 'qcow2',
        cache,
        discard: 'unmap',
        file: {
          driver: 'file',
          'node-name': `${layerNode(disk, id)}-f`,
          filename: file,
          cache,
          discard: 'unmap',
          aio: disk.file.aio,
        },
        backing: null,
      });
    }
    const begun = clock.monotonic();
    await qmp.execute(
      'transaction',
      {
        actions: overlays.map(({ disk, id, root }) => ({
          type: 'blockdev-snapshot',
          data: { node: root, overlay: layerNode(disk, id) },
        })),
      },
      { timeoutMs: TRANSACTION_MS },
    );
    return clock.monotonic() - begun;
  });
}

/** Has QEMU let go of a layer that it was never switched to. */
export async function dropLayer(disk: RunningDisk, id: string): Promise<void> {
  await disk
    .qmp()
    .execute('blockdev-del', { 'node-name': layerNode(disk, id) })
    .catch((error: unknown) => {
      if (!(error instanceof QmpError && error.failure === 'refused')) throw conflict(error);
    });
}

/** The guest sees the new size at once. */
export async function resizeRunning(disk: RunningDisk, root: string, bytes: number): Promise<void> {
  await asked(disk, (qmp) =>
    qmp.execute('block_resize', { 'node-name': root, size: bytes }, { timeoutMs: TRANSACTION_MS }),
  );
}

/** What QEMU refuses or does not answer may pass. */
async function asked<T>(disk: RunningDisk, work: (qmp: QmpConnection) => Promise<T>): Promise<T> {
  try {
    return await work(disk.qmp());
  } catch (error) {
    throw conflict(error);
  }
}

/** What QEMU refused, as the reason of a call that may be repeated; other errors are none of QEMU's. */
function conflict(error: unknown): unknown {
  if (!(error instanceof QmpError)) return error;
  if (/No space left/.test(error.message)) return new PoolError('NoSpace', error.message, { cause: error });
  return new PoolError('Conflict', `QEMU of the guest: ${error.message}`, { cause: error });
}
