/** What the controllers of backups read. */
import { NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { Node } from '@coracle/apimachinery/types/types';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kinds/kubevirt.ts';

export type BackupStores = ReturnType<typeof backupStores>;

/** The informers, shared by both controllers. */
export const backupStores = ({ informers }: Pick<ControllerEnvironment, 'informers'>) => ({
  backups: informers.of(VIRTUAL_MACHINE_BACKUPS),
  trackers: informers.of(VIRTUAL_MACHINE_BACKUP_TRACKERS),
  vms: informers.of(VIRTUAL_MACHINES),
  vmis: informers.of(VIRTUAL_MACHINE_INSTANCES),
  claims: informers.of(PERSISTENT_VOLUME_CLAIMS),
  kubevirts: informers.of(KUBEVIRTS),
  namespaces: informers.of(NAMESPACES),
  nodes: informers.of<Node>(NODES),
});
