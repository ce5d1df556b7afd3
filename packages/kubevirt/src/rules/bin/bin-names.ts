/** Names by which the bin and those who ask it know each other. */

/** Holds a DeletedVirtualMachineContent back until the volumes that it keeps are released. */
export const BIN_FINALIZER = 'coracle.dev/bin';

/** On what an undelete makes: UID of the content that it comes from. */
export const UNDELETED_FROM = 'coracle.dev/undeleted-from';

/** Prefix of labels of a content, one for each volume of a pool that it holds: the handle follows. */
const HOLDS = 'volume.coracle.dev/';

/** Label of the contents that hold the volume of this handle; as a selector it finds them. */
export const holdLabel = (handle: string): string => `${HOLDS}${handle}`;

/** Handles of the volumes that a content holds. */
export const heldHandles = (labels: Readonly<Record<string, string>> | undefined): string[] =>
  Object.keys(labels ?? {}).flatMap((label) => (label.startsWith(HOLDS) ? [label.slice(HOLDS.length)] : []));

/** Name of the content of a machine, by the machine's UID. */
export const contentNameOf = (uid: string): string => `vm-${uid}`;

/** Name of the record: it begins with the machine's. */
export const recordNameOf = (name: string, uid: string): string => `${name.slice(0, 200)}.${uid.slice(0, 8)}`;

/** Verb on deletedvirtualmachines of coracle.dev that bringing a machine back takes. */
export const UNDELETE_VERB = 'undelete';
