/** Who has which volume open, as far as this process knows: guests that start, run, or come from another node. */
import { PoolError } from './pool-error.ts';
import type { RunningDisk } from './running-disk.ts';

export type Access = RunningDisk['access'];

interface User {
  /** UID of the VMI. */
  readonly vmi: string;
  /** Node that it runs on. */
  readonly place: string;
  readonly access: Access;
  /** It reads only until a guest that writes asks for the volume: then this is called, and it is no user any more. */
  readonly giveWay?: (() => void) | undefined;
  disk?: RunningDisk;
}

/** How the layers of a volume may be changed now. */
export type Reach = { readonly how: 'offline' } | { readonly how: 'online'; readonly disk: RunningDisk };

export interface VolumeUsers {
  /** Throws PoolError `InUse` while another guest has the volume, unless both only read or both share it, or it gives way. */
  add(handle: string, user: Pick<User, 'vmi' | 'place' | 'access' | 'giveWay'>): void;
  attach(handle: string, disk: RunningDisk): void;
  /** Lets go of the connection; the volume stays in use. */
  detach(handle: string, disk: RunningDisk): void;
  remove(handle: string, user: Pick<User, 'vmi' | 'place'>): void;
  /** The same for all of its volumes. */
  removeAll(user: Pick<User, 'vmi' | 'place'>): void;
  isUsed(handle: string): boolean;
  /** Throws PoolError `Conflict` while nobody may change its layers. */
  reach(handle: string): Reach;
  /** The guest that writes to it, once it can be asked. */
  writer(handle: string): RunningDisk | undefined;
}

/** Makes the list; it has an entry for each open volume of a guest. */
export function createVolumeUsers(): VolumeUsers {
  const users = new Map<string, User[]>();
  const of = (handle: string): User[] => users.get(handle) ?? [];
  const same = (a: Pick<User, 'vmi' | 'place'>, b: Pick<User, 'vmi' | 'place'>): boolean =>
    a.vmi === b.vmi && a.place === b.place;
  const put = (handle: string, user: User): void => void users.set(handle, [...of(handle), user]);
  const remove = (handle: string, user: Pick<User, 'vmi' | 'place'>): void => {
    const left = of(handle).filter((other) => !same(other, user));
    if (left.length === 0) users.delete(handle);
    else users.set(handle, left);
  };
  return {
    add(handle, user) {
      const all = of(handle);
      if (all.some((other) => same(other, user))) return;
      const other = all.find(
        ({ vmi, access, giveWay }) => vmi !== user.vmi && !giveWay && (access === 'write' || access !== user.access),
      );
      if (other) throw new PoolError('InUse', `volume ${handle} is in use by another guest (instance ${other.vmi})`);
      for (const reader of all)
        if (reader.giveWay && user.access !== 'read') {
          remove(handle, reader);
          reader.giveWay();
        }
      put(handle, { ...user });
    },
    attach(handle, disk) {
      const known = of(handle).find((user) => same(user, disk));
      if (known) known.disk = disk;
      else put(handle, { vmi: disk.vmi, place: disk.place, access: disk.access, disk });
    },
    detach(handle, disk) {
      for (const user of of(handle)) if (user.disk === disk) delete user.disk;
    },
    remove,
    removeAll(user) {
      for (const handle of users.keys()) remove(handle, user);
    },
    isUsed: (handle) => of(handle).length > 0,
    reach(handle) {
      const all = of(handle);
      if (all.every(({ access }) => access === 'read')) return { how: 'offline' };
      const [user] = all;
      if (all.length > 1 || user?.access === 'shared')
        throw new PoolError(
          'Conflict',
          user?.access === 'shared'
            ? `volume ${handle} is shared by guests that write to it`
            : `volume ${handle} is in use by a guest that moves to another node`,
        );
      if (!user?.disk) throw new PoolError('Conflict', `volume ${handle} is in use by a guest that starts or ends`);
      const obstacle = user.disk.obstacle();
      if (obstacle !== undefined) throw new PoolError('Conflict', `volume ${handle}: ${obstacle}`);
      return { how: 'online', disk: user.disk };
    },
    writer: (handle) => of(handle).find(({ access, disk }) => access !== 'read' && disk)?.disk,
  };
}
