/** The settings of protection as they stand: read anew when a KubeVirt or SSP object changed. */

import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import { type ProtectionSettings, protectionSettingsOf } from '@coracle/kubevirt/rules/protection/protection-settings';

const PREFIXES = ['kubevirt.io/kubevirts', 'ssp.kubevirt.io/ssps'];

export interface ProtectionSettingsSource {
  now(): ProtectionSettings;
  stop(): void;
}

/** Begins to watch. */
export function watchProtectionSettings(
  store: Pick<ObjectStore, 'list' | 'watch' | 'revision'>,
): ProtectionSettingsSource {
  let known: ProtectionSettings | undefined;
  const watches = PREFIXES.map((prefix) =>
    store.watch(prefix, store.revision(), () => {
      known = undefined;
    }),
  );
  return {
    now() {
      known ??= protectionSettingsOf(
        PREFIXES.flatMap((prefix) => store.list(prefix).items.map(({ object }) => object)),
      );
      return known;
    },
    stop() {
      for (const watch of watches) watch.stop();
    },
  };
}
