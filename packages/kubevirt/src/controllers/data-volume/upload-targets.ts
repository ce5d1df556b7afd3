/** Claims that wait for an upload: the controller says which, whoever takes uploads looks them up and reports what happens. */
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import type { FillVolume } from '@coracle/cluster-rules/storage/pool-calls';

export type UploadTarget =
  | {
      readonly state: 'ready';
      readonly pool: string;
      /** The call that announces the upload; its handle is the UID of the claim. */
      readonly call: FillVolume;
    }
  | { readonly state: 'full' };

export interface UploadTargets {
  set(key: ObjectKey, target: UploadTarget): void;
  drop(key: ObjectKey): void;
  find(key: ObjectKey): UploadTarget | undefined;
  /** Says that an upload to the claim has begun, or ended. */
  report(key: ObjectKey): void;
  onReport(listener: (key: ObjectKey) => void): void;
}

/** Makes an empty one: an entry a claim, dropped with the claim. */
export function createUploadTargets(): UploadTargets {
  const targets = new Map<string, UploadTarget>();
  const listeners: ((key: ObjectKey) => void)[] = [];
  const textOf = ({ namespace, name }: ObjectKey): string => `${namespace}/${name}`;
  return {
    set: (key, target) => void targets.set(textOf(key), target),
    drop: (key) => void targets.delete(textOf(key)),
    find: (key) => targets.get(textOf(key)),
    report(key) {
      for (const listener of listeners) listener(key);
    },
    onReport: (listener) => void listeners.push(listener),
  };
}
