/**
 * The calls to the agent that runs a guest, or serves the directory in which states lie: one
 * `POST /memory/v1/CALL` each on its port, JSON both ways. Every call may be repeated: a state is known by its UID, that
 * of the VirtualMachineSnapshot.
 */

/** Call `save`: memory, devices and own disks of a running guest, and these volumes of its pool, at one point in time. */
export interface SaveMemory {
  readonly state: string;
  readonly namespace: string;
  /** Name and UID of the VirtualMachineInstance. */
  readonly vmi: string;
  readonly vmiUid: string;
  /** Snapshots of its claims: handle of the snapshot, and of the volume. */
  readonly snapshots?: readonly { readonly handle: string; readonly volume: string }[];
}

/** Reply to `save`. */
export interface MemorySaved {
  readonly state: string;
  /** Bytes on the disk of memory and devices. */
  readonly bytes: number;
  /** How long the guest stood still, ms. */
  readonly pauseMs: number;
  /** RFC 3339. */
  readonly savedAt: string;
}

/** Call `delete`: done also when there is none. */
export interface DeleteMemory {
  readonly state: string;
  readonly namespace: string;
}

/** Call `list` without members: the states in the directory that the agent serves. */
export interface MemoryStates {
  readonly states: readonly { readonly state: string; readonly namespace: string; readonly bytes: number }[];
}
