/** What can be downloaded now: the controller says so, whoever serves the bytes looks it up and hears when it ends. */
import { keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { exportHost } from '../../rules/export/export-names.ts';

export interface ExportedVolume {
  /** Name of the claim. */
  readonly claim: string;
  readonly pool: string;
  /** Of the volume in its pool. */
  readonly handle: string;
  /** The disk of a machine; otherwise files. */
  readonly isDisk: boolean;
}

export interface ExportTarget {
  /** Of the export. */
  readonly uid: string;
  /** Name of the Secret with the token, in the namespace of the export. */
  readonly secret: string;
  readonly volumes: readonly ExportedVolume[];
}

export interface ExportTargets {
  set(key: ObjectKey, target: ExportTarget): void;
  /** Ends downloads under way. */
  drop(key: ObjectKey): void;
  /** `signal` aborts once what is offered changes or goes. */
  /** Whether something of an export of this internal host is offered. */
  hasHost(host: string): boolean;
  find(key: ObjectKey): (ExportTarget & { readonly signal: AbortSignal }) | undefined;
}

/** Makes an empty one: an entry an export that is ready. */
export function createExportTargets(): ExportTargets {
  const targets = new Map<
    string,
    { readonly target: ExportTarget; readonly host: string; readonly life: AbortController }
  >();
  const drop = (key: ObjectKey): void => {
    targets.get(keyText(key))?.life.abort(new Error('the export is not ready any more'));
    targets.delete(keyText(key));
  };
  return {
    set(key, target) {
      const known = targets.get(keyText(key));
      if (known && JSON.stringify(known.target) === JSON.stringify(target)) return;
      drop(key);
      targets.set(keyText(key), { target, host: exportHost({ metadata: key }), life: new AbortController() });
    },
    drop,
    hasHost: (host) => [...targets.values()].some((known) => known.host === host),
    find(key) {
      const found = targets.get(keyText(key));
      return found && { ...found.target, signal: found.life.signal };
    },
  };
}
